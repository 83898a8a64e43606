"""The tensors of an Image GPT under the names of transformers, and back.

As in GPT-2, theirs has one projection for queries, keys and values, and keeps the transposes of linear layers' weights.
Their processor has the colours of published models from -1 to 1 (`clusters`); `palette` has twice these numbers.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from foveate.models.vision.imagegpt import ImageGPTConfig

_LINEAR = {"self.output": "attn.c_proj", "feedforward.inner": "mlp.c_fc", "feedforward.outer": "mlp.c_proj"}
_NORMS = {"around_self.norm": "ln_1", "around_feedforward.norm": "ln_2"}
_PROJECTIONS = ("query", "key", "value")
_OUTPUTS = {"label": "score.weight", "pixels": "lm_head.weight"}


def transformers(config: ImageGPTConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of ours as the state of ImageGPTForImageClassification, or of ImageGPTForCausalImageModeling if the model
    predicts pixels."""
    found = {theirs: state[ours] for ours, theirs in _whole(config).items()}
    for ours, theirs in _layers(config):
        for leaf in ("weight", "bias"):
            joined = torch.cat([state[f"{ours}.self.{part}.{leaf}"] for part in _PROJECTIONS])
            found[f"{theirs}.attn.c_attn.{leaf}"] = joined.T if leaf == "weight" else joined
            for own, name in _LINEAR.items():
                value = state[f"{ours}.{own}.{leaf}"]
                found[f"{theirs}.{name}.{leaf}"] = value.T if leaf == "weight" else value
        found |= {f"{theirs}.{name}.weight": state[f"{ours}.{own}.weight"] for own, name in _NORMS.items()}
    return found


def foveate(config: ImageGPTConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `transformers`, without the palette."""
    found = {ours: state[theirs] for ours, theirs in _whole(config).items()}
    for ours, theirs in _layers(config):
        for leaf in ("weight", "bias"):
            joined = state[f"{theirs}.attn.c_attn.{leaf}"]
            parts = (joined.T if leaf == "weight" else joined).chunk(3)
            found |= {f"{ours}.self.{part}.{leaf}": value for part, value in zip(_PROJECTIONS, parts, strict=True)}
            for own, name in _LINEAR.items():
                value = state[f"{theirs}.{name}.{leaf}"]
                found[f"{ours}.{own}.{leaf}"] = value.T if leaf == "weight" else value
        found |= {f"{ours}.{own}.weight": state[f"{theirs}.{name}.weight"] for own, name in _NORMS.items()}
    return found


def _whole(config: ImageGPTConfig) -> dict[str, str]:
    return {
        "embedding.weight": "transformer.wte.weight",
        "stack.positions.positions.table": "transformer.wpe.weight",
        "stack.norm.weight": "transformer.ln_f.weight",
        "output.weight": _OUTPUTS[config.predict],
    }


def _layers(config: ImageGPTConfig) -> list[tuple[str, str]]:
    return [(f"stack.blocks.{layer}", f"transformer.h.{layer}") for layer in range(config.layers)]
