"""What heads read, how they score and how they are mixed: fields that the configs of Transformers share, and the layers
they decide."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

from foveate.attention import Cosine, HardCapped, ScaledDot, Score, SoftCapped, SquaredDistance
from foveate.errors import UserError, at_least
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.differential_attention import DifferentialAttention
from foveate.nn.multi_token_attention import MultiTokenAttention
from foveate.nn.named_weighings import WeighingName, weighing
from foveate.nn.norms import Norm, norm

HeadScore = Literal["scaled-dot", "cosine", "distance"]

HeadMixing = Literal["attention", "talking", "multi-token", "differential"]


@dataclass(kw_only=True)
class HeadFields:
    """Fields of a config. Raises UserError for a window or a width that none can be."""

    key_value_heads: int | None = None
    """Heads of keys and values, each shared by equally many heads of queries; by default one for each."""
    value_width: int | None = None
    """Width of each head's values; by default that of its keys."""
    head_gate: bool = False
    """The input says how much of each head's output counts (Qiu et al. 2025)."""
    split: bool = False
    """Each head reads its own slice of the input, not the whole."""
    head_widths: tuple[int, ...] | None = None
    """Width of each head, one for each of `heads`, where they are unequal; by default width / heads each."""
    window: int | None = None
    """Self-attention sees at most this many positions away, on a grid this many rows and columns; by default all."""
    query_key_norm: Literal["head", "across"] | None = None
    """Normalize projected queries and keys: of each head by itself (Qwen3) or across heads (OLMo 2)."""
    head_score: HeadScore = "scaled-dot"
    """Score of a key for a query: their scaled dot product, their cosine times a learned factor of each head (Swin V2),
    or minus their squared distance (Kim et al. 2021)."""
    score_scale: float | None = None
    """Factor of the dot products of queries and keys; by default 1 / sqrt(head_width)."""
    score_cap: float | None = None
    """Limit of the scores, cap * tanh(score / cap) (Gemma 2); by default none."""
    score_limit: float | None = None
    """Limit of the scores, beyond which they are cut off; by default none."""
    weights: WeighingName = "softmax"
    """How scores become weights: sigmoid decides each key by itself (Ramapuram et al. 2024); sparsemax (Martins and
    Astudillo 2016) and entmax, between it and the softmax (Peters et al. 2019), leave out most keys, and top-k all but
    some (Gupta et al. 2021); softmax-plus-one may look at nothing (Miller 2023)."""
    top_keys: int = 8
    """Keys that top-k leaves."""
    mixing: HeadMixing = "attention"
    """What heads do with one another: nothing, or they talk (Shazeer et al. 2020), their scores depend on those of
    tokens nearby (multi-token, Golovneva et al. 2025; self-attention alone), or they are subtracted in pairs
    (differential, Ye et al. 2024)."""

    def __post_init__(self) -> None:
        at_least(0, "window", 0 if self.window is None else self.window)
        at_least(1, "top_keys", self.top_keys)
        for name in ("key_value_heads", "value_width"):
            at_least(1, name, getattr(self, name) or 1)
        for width in self.head_widths or ():
            at_least(1, "head_widths", width)


@runtime_checkable
class HeadSizes(Protocol):
    """The fields of a config that decide an attention layer."""

    width: int
    heads: int
    key_value_heads: int | None
    value_width: int | None
    head_gate: bool
    split: bool
    head_widths: tuple[int, ...] | None
    query_key_norm: Literal["head", "across"] | None
    head_score: HeadScore
    score_scale: float | None
    score_cap: float | None
    score_limit: float | None
    weights: WeighingName
    top_keys: int

    @property
    def mixing(self) -> str: ...


def stack_heads(sizes: HeadSizes) -> dict[str, Any]:
    """The fields of a stack that decide its attention layers, but the width and the window."""
    names = ("heads", *(part.name for part in fields(HeadFields) if part.name != "window"))
    return {name: getattr(sizes, name) for name in names}


def attention_layer(
    sizes: HeadSizes, dropout: float = 0.0, number: int = 0, to_source: bool = False, **options: Any
) -> MultiHeadAttention:
    """Attention whose input and source are as wide as the model, in the block of this `number`; `to_source` is for
    attention to a source. Other `options` are those of `MultiHeadAttention`."""
    options = {"dropout": dropout, **head_options(sizes), **options}
    layer: Callable[..., MultiHeadAttention] = MultiHeadAttention
    if sizes.mixing == "differential":
        layer = partial(DifferentialAttention, number=number)
    elif sizes.mixing == "multi-token" and not to_source:
        layer = MultiTokenAttention
    return layer(sizes.width, sizes.heads, **options)


def head_options(sizes: HeadSizes, kind: Norm | None = None) -> dict[str, Any]:
    """The options of `MultiHeadAttention` that the fields decide. The norm of queries and keys is of this `kind`, by
    default a LayerNorm."""
    return {
        "key_value_heads": sizes.key_value_heads,
        "value_width": sizes.value_width,
        "head_gate": sizes.head_gate,
        "split": sizes.split,
        "head_widths": sizes.head_widths,
        "norm": None if sizes.query_key_norm is None else kind or norm("layer", 1e-5),
        "norm_across": sizes.query_key_norm == "across",
        "score": _score(sizes),
        "select": weighing(sizes),
    }


def check_usual_heads(sizes: HeadSizes, what: str, allowed: tuple[str, ...] = ()) -> None:
    """Raises UserError for a field that has another value than its default, and is not `allowed`, in a layer that has
    heads of its own: `what` is its name."""
    for part in fields(HeadFields):
        if part.name not in ("window", "top_keys", *allowed) and getattr(sizes, part.name) != part.default:
            raise UserError(f"{what} has heads of its own: leave {part.name} out")


def check_positions(positions: str, sizes: HeadSizes) -> None:
    """Raises UserError for heads of unequal width where positions change the queries and keys of all alike."""
    if positions in ("rotary", "relative-projected", "contextual") and sizes.head_widths is not None:
        raise UserError(f"positions {positions!r} need heads of equal width, without head_widths")


def check_own_scores(sizes: HeadSizes, what: str) -> None:
    """Raises UserError for heads that layers with scores of their own, `what`, cannot have."""
    shared = sizes.key_value_heads not in (None, sizes.heads)
    for name, refused in (
        ("mixing", sizes.mixing in ("multi-token", "differential")),
        ("key_value_heads", shared),
        ("head_score", sizes.head_score == "distance"),
    ):
        if refused:
            raise UserError(f"{what} cannot have {name}={getattr(sizes, name)!r}: its scores are made in another way")


def _score(sizes: HeadSizes) -> Score | None:
    """The score of queries and keys; None for the usual one."""
    if (sizes.head_score, sizes.score_scale, sizes.score_cap, sizes.score_limit) == ("scaled-dot", None, None, None):
        return None
    score: Score = ScaledDot(sizes.score_scale)
    if sizes.head_score == "cosine":
        score = Cosine(sizes.heads)
    elif sizes.head_score == "distance":
        score = SquaredDistance(sizes.score_scale)
    score = score if sizes.score_cap is None else SoftCapped(score, sizes.score_cap)
    return score if sizes.score_limit is None else HardCapped(score, sizes.score_limit)
