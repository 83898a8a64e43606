"""Phi-3 (Abdin et al. 2024, https://arxiv.org/abs/2404.14219): Llama with dropout, in later models with positions on a
part of each head's width; its files join the projections of a layer."""

from dataclasses import dataclass
from typing import Any

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class Phi3Config(LlamaConfig):
    """The sizes of a Phi-3. Defaults are those of Phi-3-mini."""

    width: int = 3072
    feedforward: int = 8192
    epsilon: float = 1e-5
    max_length: int = 4096


class Phi3(Llama):
    """Predicts the next token of a text."""

    config: Phi3Config


MODEL, CONFIG = Phi3, Phi3Config

PRESETS: dict[str, dict[str, Any]] = {
    "phi3-mini": {"window": 2046},
}

SIZES: dict[str, dict[str, int]] = {
    "phi3-mini": {"vocabulary": 32_064},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
