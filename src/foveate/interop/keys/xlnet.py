"""The tensors of XLNet under the names of transformers' `XLNetLMHeadModel`, and back.

Theirs has a projection as (width, heads, head width), and one that is applied the other way round for the output.
"""

from collections.abc import Mapping

from torch import Tensor

from foveate.models.text.xlnet import XLNetConfig

_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "distance": "r"}
_OFFSETS = {"content_offset": "r_w_bias", "distance_offset": "r_r_bias", "segment_offset": "r_s_bias"}
_MODULES = {
    "around_self.norm": "rel_attn.layer_norm",
    "feedforward.inner": "ff.layer_1",
    "feedforward.outer": "ff.layer_2",
    "around_feedforward.norm": "ff.layer_norm",
}


def transformers(config: XLNetConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of ours as the state of `XLNetLMHeadModel`."""
    found = {
        "transformer.word_embedding.weight": state["embedding.weight"],
        "transformer.mask_emb": state["unknown_token"][None, None],
        "lm_loss.weight": state["output.weight"],
        "lm_loss.bias": state["output.bias"],
    }
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"transformer.layer.{layer}"
        attention, other = f"{ours}.self", f"{theirs}.rel_attn"
        for name, short in _PROJECTIONS.items():
            found[f"{other}.{short}"] = state[f"{attention}.{name}.weight"].T.unflatten(1, (config.heads, -1))
        found[f"{other}.o"] = state[f"{attention}.output.weight"].unflatten(1, (config.heads, -1))
        for name, short in _OFFSETS.items():
            found[f"{other}.{short}"] = state[f"{attention}.{name}"].squeeze(1)
        found[f"{other}.seg_embed"] = state[f"{attention}.segments"].transpose(0, 1)
        for name, other_name in _MODULES.items():
            for leaf in ("weight", "bias"):
                found[f"{theirs}.{other_name}.{leaf}"] = state[f"{ours}.{name}.{leaf}"]
    return found


def foveate(config: XLNetConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `transformers`."""
    found = {
        "embedding.weight": state["transformer.word_embedding.weight"],
        "unknown_token": state["transformer.mask_emb"].flatten(),
        "output.weight": state["lm_loss.weight"],
        "output.bias": state["lm_loss.bias"],
    }
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"transformer.layer.{layer}"
        attention, other = f"{ours}.self", f"{theirs}.rel_attn"
        for name, short in _PROJECTIONS.items():
            found[f"{attention}.{name}.weight"] = state[f"{other}.{short}"].flatten(1).T
        found[f"{attention}.output.weight"] = state[f"{other}.o"].flatten(1)
        for name, short in _OFFSETS.items():
            found[f"{attention}.{name}"] = state[f"{other}.{short}"].unsqueeze(1)
        found[f"{attention}.segments"] = state[f"{other}.seg_embed"].transpose(0, 1)
        for name, other_name in _MODULES.items():
            for leaf in ("weight", "bias"):
                found[f"{ours}.{name}.{leaf}"] = state[f"{theirs}.{other_name}.{leaf}"]
    return found
