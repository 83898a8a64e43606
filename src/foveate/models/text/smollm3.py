"""SmolLM3 (Bakouch et al. 2025, https://huggingface.co/blog/smollm3): Llama without positions in every fourth block
(Yang et al. 2025, https://arxiv.org/abs/2501.18795)."""

from dataclasses import dataclass
from typing import Any

from foveate.models.text.llama import Llama, LlamaConfig


@dataclass(kw_only=True)
class SmolLM3Config(LlamaConfig):
    """The sizes of a SmolLM3. Defaults are those of the 3-billion-parameter model."""

    width: int = 2048
    heads: int = 16
    feedforward: int = 11008
    layers: int = 36
    key_value_heads: int | None = 4
    rotary_base: float = 2_000_000.0
    rotary_layers: tuple[bool, ...] | None = (True, True, True, False)
    max_length: int = 32_768
    tie: bool = True


class SmolLM3(Llama):
    """Predicts the next token of a text."""

    config: SmolLM3Config


MODEL, CONFIG = SmolLM3, SmolLM3Config

PRESETS: dict[str, dict[str, Any]] = {
    "smollm3-3b": {"rotary_base": 5_000_000.0, "max_length": 65_536},
}

SIZES: dict[str, dict[str, int]] = {
    "smollm3-3b": {"vocabulary": 128_256},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
