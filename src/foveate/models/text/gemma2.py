"""Gemma 2 (Gemma Team 2024, https://arxiv.org/abs/2408.00118): norms before and after each layer, whose factor is
1 + weight, soft caps of scores and logits, scaled embeddings, and a window in every second block."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class Gemma2Config(LlamaConfig):
    """The sizes of a Gemma 2. Defaults are those of the 2-billion-parameter model."""

    width: int = 2304
    heads: int = 8
    feedforward: int = 9216
    layers: int = 26
    norm: Literal["post", "pre", "output", "sandwich"] = "sandwich"
    norm_kind: Literal["layer", "rms", "rms-shifted"] = "rms-shifted"
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "gelu-tanh"
    key_value_heads: int | None = 4
    head_width: int | None = 256
    score_scale: float | None = 256**-0.5
    score_cap: float | None = 50.0
    logit_cap: float | None = 30.0
    scale_embeddings: bool = True
    window: int | None = 4095
    window_layers: tuple[bool, ...] | None = (True, False)
    max_length: int = 8192
    tie: bool = True


class Gemma2(Llama):
    """Predicts the next token of a text."""

    config: Gemma2Config


MODEL, CONFIG = Gemma2, Gemma2Config

PRESETS: dict[str, dict[str, Any]] = {
    "gemma2-2b": {},
    "gemma2-9b": {"width": 3584, "heads": 16, "key_value_heads": 8, "feedforward": 14336, "layers": 42},
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 256_000} for name in ("gemma2-2b", "gemma2-9b")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
