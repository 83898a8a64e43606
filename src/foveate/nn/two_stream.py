"""Two-stream attention with relative positions: the block of XLNet (Yang et al. 2019, section 2.3,
https://arxiv.org/abs/1906.08237), with the relative positions of Transformer-XL (Dai et al. 2019).

T  tokens of the content stream    P  places that the query stream predicts    L  distances, 2 T - 1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, RelativeEncoding, ScaledDot, SegmentEncoding, Selection, Soft, attend
from foveate.errors import UserError
from foveate.nn.attention import head_projection, split_heads
from foveate.nn.blocks import Residuals
from foveate.nn.feedforward import FeedForward
from foveate.nn.unequal_heads import UnequalOutput, UnequalProjection, head_factors, widest


@dataclass
class View:
    """The mask and the positions of a stream's queries."""

    mask: Mask | None
    places: Int[Tensor, "B P"] | None = None
    """Positions of the queries; None if they are those of the keys."""
    segments: Int[Tensor, "B P"] | None = None
    """Segments of the queries; None if segments are not distinguished."""


@dataclass
class StreamMemory:
    """The keys and values that both streams of a block attend to."""

    memory: Memory
    distances: Float[Tensor, "H L D"]
    segments: Int[Tensor, "B T"] | None


class Stream(nn.Module):
    """The attention of one stream: a module of its own, so that a look distinguishes the streams."""

    attends = True

    def __init__(self, dropout: float, select: Selection) -> None:
        super().__init__()
        self.dropout, self.select = dropout, select

    def forward(self, queries: Tensor, memory: Memory, mask: Mask | None, bias: Bias) -> Float[Tensor, "B H T D"]:
        dropout = self.dropout if self.training else 0.0
        return attend(queries, memory, mask=mask, bias=bias, select=self.select, dropout=dropout)


class TwoStreamAttention(nn.Module):
    """Attention of the content stream and of the query stream to the content stream, with the same weights.

    The score of query i and key j is `(q_i + u)·k_j + (q_i + v)·r(j - i) + (q_i + w)·s(i, j)`, divided by the root of
    the head width. r projects the waves of a distance, s is one vector if i and j are in the same segment and another
    one if not. `split`, `head_widths` and `select` are those of `MultiHeadAttention`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float = 0.0,
        split: bool = False,
        head_widths: Sequence[int] | None = None,
        select: Selection | None = None,
    ) -> None:
        super().__init__()
        if head_widths is not None and split:
            raise UserError("head_widths work with heads that read the whole input, without split")
        if head_widths is None and width % heads:
            raise UserError(f"width {width} is not a multiple of {heads} heads")
        self.head_widths = head_widths
        self.head_width = width // heads if head_widths is None else widest(head_widths, heads)
        project = head_projection(split) if head_widths is None else partial(_unequal, head_widths)
        self.query, self.key, self.value = (project(width, heads, self.head_width, False) for _ in range(3))
        # A head's own slice is of what it reads: distances are projected as wholes.
        whole = head_projection(False) if head_widths is None else project
        self.distance = whole(width, heads, self.head_width, False)
        self.output: nn.Module = nn.Linear(heads * self.head_width, width, bias=False)
        if head_widths is not None:
            self.output = UnequalOutput(head_widths, width, bias=False)
        self.content_offset, self.distance_offset, self.segment_offset = (
            nn.Parameter(torch.zeros(heads, 1, self.head_width)) for _ in range(3)
        )
        self.segments = nn.Parameter(torch.zeros(heads, 2, self.head_width))
        self.content_stream, self.query_stream = (
            Stream(dropout, Soft() if select is None else select) for _ in range(2)
        )

    def source(
        self, content: Float[Tensor, "B T C"], waves: Float[Tensor, "L C"], segments: Int[Tensor, "B T"] | None
    ) -> StreamMemory:
        """Keys and values of the content, and the vector of each distance, computed once for both streams."""
        keys, values = (split_heads(project(content), self.head_width) for project in (self.key, self.value))
        distances = split_heads(self.distance(waves)[None], self.head_width)[0]
        return StreamMemory(Memory(keys, values, ScaledDot()), distances, segments)

    def forward(
        self, x: Float[Tensor, "B P C"], source: StreamMemory, view: View, stream: Stream
    ) -> Float[Tensor, "B P C"]:
        queries = self._scaled(split_heads(self.query(x), self.head_width) + self.content_offset)
        # Biases read the queries of attention, which have the content's offset already.
        offset, factor = self._scaled(self.distance_offset - self.content_offset), self.head_width**-0.5
        bias: Bias = RelativeEncoding(source.distances, offset, factor, view.places)
        if source.segments is not None and view.segments is not None:
            offset = self._scaled(self.segment_offset - self.content_offset)
            bias = bias + SegmentEncoding(self.segments, offset, factor, view.segments, source.segments)
        return self.output(stream(queries, source.memory, view.mask, bias).transpose(1, 2).flatten(2))

    def _scaled(self, queries: Float[Tensor, "... H P D"]) -> Float[Tensor, "... H P D"]:
        """Queries, or what is added to them, whose products are divided by the root of each head's own width."""
        return queries if self.head_widths is None else queries * head_factors(self.head_widths, queries)


def _unequal(head_widths: Sequence[int], width: int, heads: int, head_width: int, bias: bool) -> nn.Module:
    return UnequalProjection(width, head_widths, bias)


class TwoStreamBlock(nn.Module):
    """Attention, then a feed-forward layer, with the same weights for both streams."""

    def __init__(self, attention: TwoStreamAttention, feedforward: FeedForward, residual: Residuals) -> None:
        super().__init__()
        self.self = attention
        self.feedforward = feedforward
        self.around_self = residual()
        self.around_feedforward = residual()

    def content(self, x: Float[Tensor, "B T C"], source: StreamMemory, view: View) -> Float[Tensor, "B T C"]:
        """The next content stream; `source` is of the same content."""
        return self._read(x, source, view, self.self.content_stream)

    def query(self, x: Float[Tensor, "B P C"], source: StreamMemory, view: View) -> Float[Tensor, "B P C"]:
        """The next query stream; `source` is of the content, which never sees the query stream."""
        return self._read(x, source, view, self.self.query_stream)

    def _read(self, x: Tensor, source: StreamMemory, view: View, stream: Stream) -> Tensor:
        x = self.around_self(x, partial(self.self, source=source, view=view, stream=stream))
        return self.around_feedforward(x, self.feedforward)


def distance_waves(length: int, width: int, like: Tensor) -> Float[Tensor, "L C"]:
    """Waves of the distances from -(length - 1) to length - 1: the sines of i - j, then the cosines."""
    distances = torch.arange(length - 1, -length, -1, dtype=torch.float64, device=like.device)
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=like.device) / width)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1).to(like.dtype)
