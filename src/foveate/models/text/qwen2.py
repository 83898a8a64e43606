"""Qwen2 (Yang et al. 2024, https://arxiv.org/abs/2407.10671): Llama with biases of queries, keys and values."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class Qwen2Config(LlamaConfig):
    """The sizes of a Qwen2. Defaults are those of transformers."""

    feedforward: int = 22016
    key_value_heads: int | None = 32
    attention_bias: Literal["all", "inputs", "none"] | None = "inputs"
    max_length: int = 32_768


class Qwen2(Llama):
    """Predicts the next token of a text."""

    config: Qwen2Config


MODEL, CONFIG = Qwen2, Qwen2Config

PRESETS: dict[str, dict[str, Any]] = {
    "qwen2-0.5b": {
        "width": 896,
        "heads": 14,
        "key_value_heads": 2,
        "feedforward": 4864,
        "layers": 24,
        "rotary_base": 1_000_000.0,
        "max_length": 131_072,
        "tie": True,
    },
}

SIZES: dict[str, dict[str, int]] = {
    "qwen2-0.5b": {"vocabulary": 151_936},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
