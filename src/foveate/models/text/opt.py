"""OPT (Zhang et al. 2022, https://arxiv.org/abs/2205.01068): GPT-3 without bands, with ReLU, and two rows
of the table of positions that none has."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.models.text.causal_language_model import CausalLanguageModel, CausalLanguageModelConfig
from foveate.nn.positions import PositionKind


@dataclass(kw_only=True)
class OPTConfig(CausalLanguageModelConfig):
    """The sizes of an OPT. Defaults are those of the 125-million-parameter model."""

    width: int = 768
    heads: int = 12
    feedforward: int = 3072
    layers: int = 12
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "relu"
    positions: PositionKind = "learned"
    position_offset: int | None = 2
    max_length: int = 2048


class OPT(CausalLanguageModel):
    """Predicts the next token of a text."""

    config: OPTConfig


MODEL, CONFIG = OPT, OPTConfig

PRESETS: dict[str, dict[str, Any]] = {
    "opt-125m": {},
    "opt-1.3b": {"width": 2048, "heads": 32, "feedforward": 8192, "layers": 24},
    "opt-6.7b": {"width": 4096, "heads": 32, "feedforward": 16384, "layers": 32},
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 50_272} for name in ("opt-125m", "opt-1.3b", "opt-6.7b")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
