"""Attention as one function, `attend`, and its parts as values: scores, masks, biases, selections, memories."""

from foveate.attention.attend import attend, attend_full
from foveate.attention.biases import Bias, BucketedPosition, Gaussian, LinearDistance, RelativeKeys, RelativePosition
from foveate.attention.contextual import ContextualPosition
from foveate.attention.disentangled import Disentangled, Distances
from foveate.attention.grid_biases import (
    ContinuousGridPosition,
    LinearGridDistance,
    RelativeGridKeys,
    RelativeGridPosition,
    RelativePatchPosition,
)
from foveate.attention.grid_masks import grid_window
from foveate.attention.hooks import intercept
from foveate.attention.length_masks import left_padding, padding, same_text, segments
from foveate.attention.linear import Fading, Features, Linear, RandomFeatures, corrected, fading, positive, taylor
from foveate.attention.masks import Mask, around, causal, window
from foveate.attention.memory import Memory, RowGroups, assign_rows
from foveate.attention.monotonic import Monotonic
from foveate.attention.multi_token import MultiToken
from foveate.attention.points import PointScore, grid_places, on_finest_grid, point_queries
from foveate.attention.positions import sinusoidal, sinusoidal_grid
from foveate.attention.rank_masks import by_rank
from foveate.attention.relative_biases import RelativeEncoding, SegmentEncoding
from foveate.attention.scores import (
    Additive,
    Biaffine,
    Cosine,
    Dot,
    HardCapped,
    ScaledDot,
    Score,
    SoftCapped,
    SquaredDistance,
)
from foveate.attention.selection import Attended, Hard, Selection, Soft, Weighing
from foveate.attention.sparse_masks import big_bird, blocks, chosen_blocks, leading, longformer, looking, strided
from foveate.attention.weighings import Entmax, Sigmoid, SoftmaxPlusOne, Sparsemax, TalkingHeads, TopK

__all__ = [
    "ContextualPosition",
    "ContinuousGridPosition",
    "Cosine",
    "Additive",
    "Attended",
    "Biaffine",
    "Bias",
    "BucketedPosition",
    "Disentangled",
    "SquaredDistance",
    "Distances",
    "Entmax",
    "Dot",
    "Fading",
    "Features",
    "Gaussian",
    "Hard",
    "HardCapped",
    "Linear",
    "LinearDistance",
    "LinearGridDistance",
    "Mask",
    "Memory",
    "Monotonic",
    "MultiToken",
    "PointScore",
    "RandomFeatures",
    "RelativeEncoding",
    "RelativeGridKeys",
    "RelativeGridPosition",
    "RelativePatchPosition",
    "RelativeKeys",
    "RelativePosition",
    "RowGroups",
    "ScaledDot",
    "Score",
    "SegmentEncoding",
    "Selection",
    "Sigmoid",
    "Soft",
    "SoftmaxPlusOne",
    "Sparsemax",
    "SoftCapped",
    "TalkingHeads",
    "TopK",
    "Weighing",
    "around",
    "big_bird",
    "blocks",
    "chosen_blocks",
    "leading",
    "longformer",
    "looking",
    "strided",
    "attend",
    "attend_full",
    "by_rank",
    "corrected",
    "fading",
    "causal",
    "grid_places",
    "grid_window",
    "left_padding",
    "on_finest_grid",
    "padding",
    "point_queries",
    "same_text",
    "positive",
    "segments",
    "taylor",
    "assign_rows",
    "sinusoidal",
    "sinusoidal_grid",
    "intercept",
    "window",
]
