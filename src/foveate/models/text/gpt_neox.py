"""GPT-NeoX (Black et al. 2022, https://arxiv.org/abs/2204.06745): rotary positions on a quarter of each head's width,
attention and feed-forward layer in parallel, and an output layer with weights of its own."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.causal_language_model import CausalLanguageModel, CausalLanguageModelConfig
from foveate.nn.positions import PositionKind


@dataclass(kw_only=True)
class GPTNeoXConfig(CausalLanguageModelConfig):
    """The sizes of a GPT-NeoX. Defaults are those of the 20-billion-parameter model."""

    width: int = 6144
    heads: int = 64
    feedforward: int = 24576
    layers: int = 44
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    parallel: bool = True
    positions: PositionKind = "rotary"
    rotary_width: int | None = 24
    max_length: int = 2048
    dropout: float = 0.0
    tie: bool = False


class GPTNeoX(CausalLanguageModel):
    """Predicts the next token of a text: in each block `x + attention(norm(x)) + feedforward(norm(x))`."""

    config: GPTNeoXConfig


MODEL, CONFIG = GPTNeoX, GPTNeoXConfig

PRESETS: dict[str, dict[str, Any]] = {
    "gpt-neox-20b": {},
    "pythia-70m": {"layers": 6, "width": 512, "heads": 8, "feedforward": 2048, "rotary_width": 16},
}

SIZES: dict[str, dict[str, int]] = {
    "gpt-neox-20b": {"vocabulary": 50_432},
    "pythia-70m": {"vocabulary": 50_304},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
