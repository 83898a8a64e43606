"""What heads read and how far they look: fields that the configs of Transformers share, and the layer they decide."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from foveate.errors import at_least
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.named_weighings import WeighingName, weighing


@dataclass(kw_only=True)
class HeadFields:
    """Fields of a config. Raises UserError for a window or a width that none can be."""

    split: bool = False
    """Each head reads its own slice of the input, not the whole."""
    head_widths: tuple[int, ...] | None = None
    """Width of each head, one for each of `heads`, where they are unequal; by default width / heads each."""
    window: int | None = None
    """Self-attention sees at most this many positions away, on a grid this many rows and columns; by default all."""
    weights: WeighingName = "softmax"
    """How scores become weights: sigmoid decides each key by itself (Ramapuram et al. 2024); sparsemax (Martins and
    Astudillo 2016) and entmax, between it and the softmax (Peters et al. 2019), leave out most keys, and top-k all but
    some (Gupta et al. 2021); softmax-plus-one may look at nothing (Miller 2023)."""
    top_keys: int = 8
    """Keys that top-k leaves."""

    def __post_init__(self) -> None:
        at_least(0, "window", 0 if self.window is None else self.window)
        at_least(1, "top_keys", self.top_keys)
        for width in self.head_widths or ():
            at_least(1, "head_widths", width)


@runtime_checkable
class HeadSizes(Protocol):
    """The fields of a config that decide an attention layer."""

    width: int
    heads: int
    split: bool
    head_widths: tuple[int, ...] | None
    weights: WeighingName
    top_keys: int


def stack_heads(sizes: HeadSizes) -> dict[str, Any]:
    """The fields of a stack that decide its attention layers, but the width."""
    return {name: getattr(sizes, name) for name in ("heads", "split", "head_widths", "weights", "top_keys")}


def attention_layer(sizes: HeadSizes, dropout: float = 0.0) -> MultiHeadAttention:
    """Attention whose input and source are as wide as the model."""
    return MultiHeadAttention(
        sizes.width,
        sizes.heads,
        dropout=dropout,
        split=sizes.split,
        head_widths=sizes.head_widths,
        select=weighing(sizes),
    )
