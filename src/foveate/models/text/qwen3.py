"""Qwen3 (Yang et al. 2025, https://arxiv.org/abs/2505.09388): Llama with a norm of each head's queries and keys."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class Qwen3Config(LlamaConfig):
    """The sizes of a Qwen3. Defaults are those of transformers."""

    feedforward: int = 22016
    key_value_heads: int | None = 32
    head_width: int | None = 128
    query_key_norm: Literal["head", "across"] | None = "head"
    max_length: int = 32_768


class Qwen3(Llama):
    """Predicts the next token of a text."""

    config: Qwen3Config


MODEL, CONFIG = Qwen3, Qwen3Config

PRESETS: dict[str, dict[str, Any]] = {
    "qwen3-0.6b": {
        "width": 1024,
        "heads": 16,
        "key_value_heads": 8,
        "feedforward": 3072,
        "layers": 28,
        "rotary_base": 1_000_000.0,
        "max_length": 40_960,
        "tie": True,
    },
}

SIZES: dict[str, dict[str, int]] = {
    "qwen3-0.6b": {"vocabulary": 151_936},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
