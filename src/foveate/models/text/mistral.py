"""Mistral (Jiang et al. 2023, https://arxiv.org/abs/2310.06825): Llama with groups of heads, where each token sees
those in a window before it."""

from dataclasses import dataclass
from typing import Any

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class MistralConfig(LlamaConfig):
    """The sizes of a Mistral. Defaults are those of the 7-billion-parameter model."""

    feedforward: int = 14336
    key_value_heads: int | None = 8
    max_length: int = 131_072
    window: int | None = 4095


class Mistral(Llama):
    """Predicts the next token of a text."""

    config: MistralConfig


MODEL, CONFIG = Mistral, MistralConfig

PRESETS: dict[str, dict[str, Any]] = {
    "mistral-7b": {"epsilon": 1e-5, "max_length": 32_768},
}

SIZES: dict[str, dict[str, int]] = {
    "mistral-7b": {"vocabulary": 32_000},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
