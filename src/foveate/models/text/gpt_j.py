"""GPT-J (Wang and Komatsuzaki 2021, https://github.com/kingoflolz/mesh-transformer-jax): attention and feed-forward
layer in parallel behind one norm, rotary positions on a quarter of each head's width, attention without biases."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.causal_language_model import CausalLanguageModel, CausalLanguageModelConfig
from foveate.nn.positions import PositionKind


@dataclass(kw_only=True)
class GPTJConfig(CausalLanguageModelConfig):
    """The sizes of a GPT-J. Defaults are those of the 6-billion-parameter model."""

    width: int = 4096
    heads: int = 16
    feedforward: int = 16384
    layers: int = 28
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "gelu-tanh"
    attention_bias: Literal["all", "inputs", "none"] | None = "none"
    parallel: bool = True
    one_norm: bool = True
    positions: PositionKind = "rotary"
    rotary_width: int | None = 64
    max_length: int = 2048
    dropout: float = 0.0
    tie: bool = False
    output_bias: bool = True


class GPTJ(CausalLanguageModel):
    """Predicts the next token of a text: in each block `x + attention(norm(x)) + feedforward(norm(x))`."""

    config: GPTJConfig


MODEL, CONFIG = GPTJ, GPTJConfig

PRESETS: dict[str, dict[str, Any]] = {"gpt-j-6b": {}}

SIZES: dict[str, dict[str, int]] = {
    "gpt-j-6b": {"vocabulary": 50_400},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
