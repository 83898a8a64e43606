"""Llama (Touvron et al. 2023, https://arxiv.org/abs/2302.13971): RMSNorm, SwiGLU, rotary positions, no biases; since
Llama 2, heads in groups that share keys and values; since Llama 3.1, positions scaled for longer texts (Grattafiori et
al. 2024, https://arxiv.org/abs/2407.21783). SmolLM2 (Allal et al. 2025, https://arxiv.org/abs/2502.02737) is
built alike."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.causal_language_model import CausalLanguageModel, CausalLanguageModelConfig
from foveate.nn.positions import PositionKind
from foveate.nn.rotary import RotaryScaling


@dataclass(kw_only=True)
class LlamaConfig(CausalLanguageModelConfig):
    """The sizes of a Llama. Defaults are those of the 7-billion-parameter model."""

    width: int = 4096
    heads: int = 32
    feedforward: int = 11008
    layers: int = 32
    norm_kind: Literal["layer", "rms", "rms-shifted"] = "rms"
    epsilon: float = 1e-6
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "silu"
    gated: bool = True
    bias: bool = False
    positions: PositionKind = "rotary"
    max_length: int = 2048
    dropout: float = 0.0
    tie: bool = False


class Llama(CausalLanguageModel):
    """Predicts the next token of a text."""

    config: LlamaConfig


MODEL, CONFIG = Llama, LlamaConfig

PRESETS: dict[str, dict[str, Any]] = {
    "llama-7b": {},
    "llama3.2-1b": {
        "width": 2048,
        "heads": 32,
        "key_value_heads": 8,
        "feedforward": 8192,
        "layers": 16,
        "epsilon": 1e-5,
        "rotary_base": 500_000.0,
        "rotary_scaling": RotaryScaling("llama3", 32.0),
        "max_length": 131_072,
        "tie": True,
    },
    "smollm2-135m": {
        "width": 576,
        "heads": 9,
        "key_value_heads": 3,
        "feedforward": 1536,
        "layers": 30,
        "epsilon": 1e-5,
        "rotary_base": 100_000.0,
        "max_length": 8192,
        "tie": True,
    },
}

SIZES: dict[str, dict[str, int]] = {
    "llama-7b": {"vocabulary": 32_000},
    "llama3.2-1b": {"vocabulary": 128_256},
    "smollm2-135m": {"vocabulary": 49_152},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
