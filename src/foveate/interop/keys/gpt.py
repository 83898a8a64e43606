"""The tensors of GPT-1 and GPT-2 under the names of transformers, and back.

Theirs has one projection for queries, keys and values, and keeps the transposes of linear layers' weights.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from foveate.models.text.gpt import GPTConfig

_LINEAR = {"self.output": "attn.c_proj", "feedforward.inner": "mlp.c_fc", "feedforward.outer": "mlp.c_proj"}
_NORMS = {"around_self.norm": "ln_1", "around_feedforward.norm": "ln_2"}
_PROJECTIONS = ("query", "key", "value")


def transformers(config: GPTConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of ours as the state of GPT2LMHeadModel (pre-norm) or OpenAIGPTLMHeadModel (post-norm)."""
    body, words, places = _names(config)
    found = {words: state["embedding.weight"], places: state["stack.positions.positions.table"]}
    found["lm_head.weight"] = state["output.weight"]
    if config.norm == "pre":
        found |= {f"{body}.ln_f.{leaf}": state[f"stack.norm.{leaf}"] for leaf in ("weight", "bias")}
    for layer in range(config.layers):
        ours, theirs = f"stack.blocks.{layer}", f"{body}.h.{layer}"
        for leaf in ("weight", "bias"):
            joined = torch.cat([state[f"{ours}.self.{part}.{leaf}"] for part in _PROJECTIONS])
            found[f"{theirs}.attn.c_attn.{leaf}"] = _transposed(joined)
            found |= {
                f"{theirs}.{name}.{leaf}": _transposed(state[f"{ours}.{own}.{leaf}"]) for own, name in _LINEAR.items()
            }
            found |= {f"{theirs}.{name}.{leaf}": state[f"{ours}.{own}.{leaf}"] for own, name in _NORMS.items()}
    return found


def foveate(config: GPTConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `transformers`."""
    body, words, places = _names(config)
    found = {"embedding.weight": state[words], "stack.positions.positions.table": state[places]}
    found["output.weight"] = state["lm_head.weight"]
    if config.norm == "pre":
        found |= {f"stack.norm.{leaf}": state[f"{body}.ln_f.{leaf}"] for leaf in ("weight", "bias")}
    for layer in range(config.layers):
        ours, theirs = f"stack.blocks.{layer}", f"{body}.h.{layer}"
        for leaf in ("weight", "bias"):
            parts = _transposed(state[f"{theirs}.attn.c_attn.{leaf}"]).chunk(3)
            found |= {f"{ours}.self.{part}.{leaf}": value for part, value in zip(_PROJECTIONS, parts, strict=True)}
            found |= {
                f"{ours}.{own}.{leaf}": _transposed(state[f"{theirs}.{name}.{leaf}"]) for own, name in _LINEAR.items()
            }
            found |= {f"{ours}.{own}.{leaf}": state[f"{theirs}.{name}.{leaf}"] for own, name in _NORMS.items()}
    return found


def _names(config: GPTConfig) -> tuple[str, str, str]:
    """The names of the body, the token embedding and the positions."""
    names = ("wte", "wpe") if config.norm == "pre" else ("tokens_embed", "positions_embed")
    return "transformer", *(f"transformer.{name}.weight" for name in names)  # type: ignore[return-value]


def _transposed(tensor: Tensor) -> Tensor:
    return tensor.T if tensor.ndim == 2 else tensor
