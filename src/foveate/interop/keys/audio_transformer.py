"""The tensors of an audio Transformer under the names of transformers' `ASTForAudioClassification`, and back."""

from collections.abc import Mapping

import torch
from torch import Tensor

from foveate.models.speech.audio_transformer import AudioTransformerConfig

_BODY = "audio_spectrogram_transformer"

_BLOCK = {
    "self.query": "attention.q_proj",
    "self.key": "attention.k_proj",
    "self.value": "attention.v_proj",
    "self.output": "attention.o_proj",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_self.norm": "layernorm_before",
    "around_feedforward.norm": "layernorm_after",
}

_TOKENS = tuple(f"{_BODY}.embeddings.{name}" for name in ("cls_token", "distillation_token"))


def transformers(config: AudioTransformerConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of ours under their names; the two tokens are tensors of their own there."""
    names = _names(config)
    found = {names[name]: value for name, value in state.items() if name != "tokens"}
    return found | dict(zip(_TOKENS, state["tokens"].split(1, 1), strict=True))


def foveate(config: AudioTransformerConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `transformers`."""
    found = {ours: state[theirs] for ours, theirs in _names(config).items()}
    return found | {"tokens": torch.cat([state[name] for name in _TOKENS], 1)}


def _names(config: AudioTransformerConfig) -> dict[str, str]:
    """Their name of each tensor but the tokens."""
    modules = {
        "patches": f"{_BODY}.embeddings.patch_embeddings.projection",
        "norm": f"{_BODY}.layernorm",
        "output_norm": "classifier.layernorm",
        "output": "classifier.dense",
    }
    for layer in range(config.layers):
        modules |= {f"blocks.{layer}.{ours}": f"{_BODY}.layers.{layer}.{name}" for ours, name in _BLOCK.items()}
    names = {f"{ours}.{leaf}": f"{name}.{leaf}" for ours, name in modules.items() for leaf in ("weight", "bias")}
    return names | {"positions": f"{_BODY}.embeddings.position_embeddings"}
