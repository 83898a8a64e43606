"""OLMo 2 (OLMo Team 2025, https://arxiv.org/abs/2501.00656): Llama with norms of each layer's output, and of queries
and keys across heads."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class Olmo2Config(LlamaConfig):
    """The sizes of an OLMo 2. Defaults are those of transformers."""

    norm: Literal["post", "pre", "output", "sandwich"] = "output"
    query_key_norm: Literal["head", "across"] | None = "across"
    epsilon: float = 1e-5


class Olmo2(Llama):
    """Predicts the next token of a text."""

    config: Olmo2Config


MODEL, CONFIG = Olmo2, Olmo2Config

PRESETS: dict[str, dict[str, Any]] = {
    "olmo2-1b": {
        "width": 2048,
        "heads": 16,
        "feedforward": 8192,
        "layers": 16,
        "epsilon": 1e-6,
        "rotary_base": 500_000.0,
        "max_length": 4096,
    },
    "olmo2-7b": {"epsilon": 1e-6, "rotary_base": 500_000.0, "max_length": 4096},
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 100_352} for name in ("olmo2-1b", "olmo2-7b")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
