"""DeBERTa, a BERT whose attention compares contents and distances apart (He et al. 2021,
https://arxiv.org/abs/2006.03654): a token asks for what stands at a distance, and a distance for a token.

Its second and third version share projections and put long distances into buckets (He et al. 2023,
https://arxiv.org/abs/2111.09543).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from foveate.attention import Distances
from foveate.models.text.bert import Bert, BertConfig
from foveate.nn import TransformerStack
from foveate.nn.disentangled_attention import DisentangledAttention, DistanceVectors
from foveate.nn.heads import check_own_scores
from foveate.nn.positions import PositionKind


@dataclass(kw_only=True)
class DebertaConfig(BertConfig):
    """The sizes of a DeBERTa. Defaults are those of DeBERTa-v3-Base."""

    distances: int = 256
    """Distances with a vector of their own, on each side; farther ones have that of the farthest."""
    longest: int | None = 512
    """The end of the last bucket: distances beyond half of `distances` share vectors; None without buckets."""
    to_position: bool = True
    """Tokens ask for distances (content to position)."""
    from_position: bool = True
    """Distances ask for tokens (position to content)."""
    share_projections: bool = True
    """Distances are projected as keys and queries are; otherwise by matrices of their own."""
    norm_distances: bool = True
    """The vectors of distances are normalized."""
    key_bias: bool = True
    """Keys, and what tokens ask for at a distance, have biases (the first version: none)."""
    token_types: int | None = None
    positions: PositionKind = "none"
    epsilon: float = 1e-7
    text_activation: Literal["tanh", "relu", "gelu", "gelu-tanh", "silu"] = "gelu"


class Deberta(Bert):
    """Encodes each token in the light of all others; a head predicts from what it encoded."""

    @staticmethod
    def _stack(config: Any) -> TransformerStack:
        check_own_scores(config, "DeBERTa")
        distances = Distances(config.distances, config.longest)
        epsilon = config.epsilon if config.norm_distances else None
        attention = partial(
            DisentangledAttention,
            to_position=config.to_position,
            from_position=config.from_position,
            share=config.share_projections,
            key_bias=config.key_bias,
        )
        return TransformerStack(config, DistanceVectors(config.width, distances, epsilon, config.dropout), attention)


MODEL, CONFIG = Deberta, DebertaConfig

_FIRST: dict[str, Any] = {
    "distances": 512,
    "longest": None,
    "share_projections": False,
    "norm_distances": False,
    "key_bias": False,
}

PRESETS: dict[str, dict[str, Any]] = {
    "deberta-tiny": {"width": 256, "heads": 4, "feedforward": 1024, "layers": 4},
    "deberta-base": _FIRST,
    "deberta-v3-small": {"layers": 6},
    "deberta-v3-base": {},
    "deberta-v3-large": {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24},
}

SIZES: dict[str, dict[str, int]] = {
    "deberta-base": {"vocabulary": 50_265},
    **{name: {"vocabulary": 128_100} for name in ("deberta-v3-small", "deberta-v3-base", "deberta-v3-large")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
