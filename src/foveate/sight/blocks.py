"""The attention weights of a call in blocks: whole rows of some heads, small enough to stay in the processor's cache.

Every measure is computed from these blocks, and all requested measures share them. A block covers all keys that its
queries may attend to, so its rows can be normalised at once: no second pass, no log-sum-exp from a first one.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from foveate.attention import scratch
from foveate.attention.autocast import without_autocast
from foveate.attention.call import Call
from foveate.attention.selection import Soft, Weighing, quick_weights
from foveate.sight.given_weights import GivenWeights

BLOCK = 2**21
"""Maximum number of weights in a block, except where one row has more."""

HEIGHT = 128
"""Preferred number of rows in a block: the keys are read once for each block."""

Box = tuple[slice, ...]
"""A choice of examples and heads: a span of each leading dimension."""


@dataclass
class Block:
    """The weights of some heads and queries, over the keys that these queries may attend to."""

    box: Box
    """Its examples and heads, relative to the chosen ones."""
    rows: slice
    """Its queries, relative to the chosen ones."""
    columns: slice
    """Its keys; the weights of all other keys are 0."""
    scores: Float[Tensor, "... R K"]
    """The scores before the softmax, -inf where a key is masked."""
    weights: Float[Tensor, "... R K"]

    def query_view(self, result: Tensor) -> Tensor:
        """The view of this block's queries in a result of shape (..., T, ...)."""
        return result[*self.box, self.rows]

    def key_view(self, result: Tensor) -> Tensor:
        """The view of this block's keys in a result of shape (..., S)."""
        return result[*self.box, self.columns]


class Measure(ABC):
    """A quantity that is computed from the weights of one call, block by block. An instance serves one call."""

    @abstractmethod
    def start(self, call: Call) -> None:
        """Allocate the result. Weights that no block contains are 0."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Add a block. It must not be changed or kept: the next block uses the same memory."""

    @abstractmethod
    def result(self) -> Any:
        """The result, with the leading dimensions (B, H)."""


def zeros(call: Call, *shape: int) -> Tensor:
    """Zeros for each example and head of a call, in single precision or higher."""
    return call.queries.new_zeros(*call.leading, *shape, dtype=compute_dtype(call))


def merge_heads(tensor: Tensor, leading: int) -> Shaped[Tensor, "B H ..."]:
    """Reshape the first `leading` dimensions of a tensor to two: examples and heads."""
    sizes = tensor.shape[:leading]
    return tensor.reshape(*(sizes[:1] or (1,)), math.prod(sizes[1:]), *tensor.shape[leading:])


def compute_dtype(call: Call) -> torch.dtype:
    """The dtype to compute in: single precision or higher."""
    return torch.promote_types(call.queries.dtype, torch.float32)


@contextmanager
def measurement_context(call: Call) -> Iterator[None]:
    """Disable gradients and autocast, and let successive blocks use the same memory."""
    with torch.no_grad(), without_autocast(call.queries.device), scratch.reuse():
        yield


def weight_blocks(call: Call, queries: Sequence[int] | None = None, box: Box | None = None) -> Iterator[Block]:
    """The weights of the chosen queries, examples and heads (default: all), within a `measurement_context`.

    Blocks whose queries may attend to no key are left out.
    """
    queries = range(call.queries.shape[-2]) if queries is None else queries
    box = tuple(slice(0, size) for size in call.leading) if box is None else box
    if not _size(box) or not len(queries):
        return
    row = call.keys.shape[-2] * call.score.footprint(call.queries.shape[-1])
    # A score with parameters may have some for each head. Only the score can select them, so all heads stay together.
    together = call.leading.numel() if call.select.joins_heads else _size(box) if call.score.tensors() else 1
    most = max(1, BLOCK // max(1, row * together))
    height = min(HEIGHT, most, len(queries))
    parts = list(_split(box, max(together, most // height)))
    # Under a causal mask the last queries attend to the most keys, so memory that fits them fits all others.
    for start in reversed(range(0, len(queries), height)):
        over = slice(start, min(len(queries), start + height))
        spans = _contiguous_spans(queries[over])
        around = [call.around(span) for span in spans]
        if reach := _reach(call, around):
            rows = _BlockRows(call, spans, around, reach)
            for part in parts:
                within = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, box, strict=True))
                yield Block(within, over, slice(reach.start, reach.stop), *rows.scores_and_weights(part))


def _size(box: Box) -> int:
    return math.prod(part.stop - part.start for part in box)


def _split(box: Box, most: int) -> Iterator[Box]:
    """Split a box into boxes of at most `most` heads, counted over all examples."""
    if _size(box) <= most:
        yield box
        return
    first, *others = box
    step = max(1, most // _size(tuple(others)))
    for start in range(first.start, first.stop, step):
        for rest in _split(tuple(others), most):
            yield (slice(start, min(first.stop, start + step)), *rest)


def _contiguous_spans(positions: Sequence[int]) -> list[range]:
    """The positions as contiguous spans, in the same order."""
    if isinstance(positions, range):
        return [positions]
    starts = [at for at, position in enumerate(positions) if at == 0 or position != positions[at - 1] + 1]
    ends = [*starts[1:], len(positions)]
    return [range(positions[at], positions[at] + end - at) for at, end in zip(starts, ends, strict=True)]


def _reach(call: Call, spans: list[range]) -> range:
    """A span that contains every key that these queries may attend to."""
    total = call.keys.shape[-2]
    if call.mask is None:
        return range(total)
    reaches = [reach for span in spans if (reach := call.mask.reach(span, total))] or [range(0)]
    return range(min(reach.start for reach in reaches), max(reach.stop for reach in reaches))


class _BlockRows:
    """Some queries of all heads, with the keys, mask and bias that apply to them."""

    def __init__(self, call: Call, own: list[range], spans: list[range], columns: range) -> None:
        """`spans` are those of the block's `own` queries, with the queries before them that their weights depend on."""
        self.call, self.own, self.spans, self.columns = call, own, spans, columns
        self.queries = _concatenate([call.queries[..., span.start : span.stop, :] for span in spans])
        self.keys = call.keys[..., columns.start : columns.stop, :]
        self.bias = None if call.bias is None else _concatenate([self._bias(span) for span in spans])
        self.given = None
        if isinstance(call.select, GivenWeights):
            given = call.select.weights[..., columns.start : columns.stop]
            self.given = _concatenate([given[..., span.start : span.stop, :] for span in spans])
        self.masked, self.masked_columns = None, slice(None)
        if call.mask is not None:
            masked = _concatenate([self._masked(span) for span in spans])
            columns_with_masked = masked.flatten(0, -2).any(0).nonzero()
            if len(columns_with_masked):
                # Most masks hide keys at one end, a causal mask at the last columns: the other columns need no change.
                self.masked_columns = slice(int(columns_with_masked[0]), int(columns_with_masked[-1]) + 1)
                self.masked = masked[..., self.masked_columns]

    def scores_and_weights(self, box: Box) -> tuple[Float[Tensor, "... R K"], Float[Tensor, "... R K"]]:
        """The scores and weights of some examples and heads."""
        scratch.next_block()
        if self.given is not None:
            given = self._select(self.given, box).to(compute_dtype(self.call))
            return given.clamp(min=0).log(), given
        rule, sinks = self.call.select, self.call.select.sinks
        if isinstance(rule, Weighing) and not isinstance(rule, Soft):
            found = self._weights(rule, box)
            return found.log(), found
        scores = self._masked_scores(box)
        return scores, quick_weights(scores, None if sinks is None else sinks.expand(self.call.leading)[box])

    def _weights(self, rule: Weighing, box: Box) -> Float[Tensor, "... R K"]:
        """The weights by another rule than the softmax, which may need the scores of all heads."""
        around = tuple(slice(0, size) for size in self.call.leading) if rule.joins_heads else box
        queries, scores = self._select(self.queries, around), self._masked_scores(around)
        if self.own == self.spans:
            found = rule.for_queries(queries).weigh(scores)
        else:
            parts = (part.split([len(span) for span in self.spans], -2) for part in (queries, scores))
            found = _concatenate(
                [
                    rule.for_queries(asked).weigh(seen)[..., -len(own) :, :]
                    for own, asked, seen in zip(self.own, *parts, strict=True)
                ]
            )
        return found[box] if rule.joins_heads else found

    def _masked_scores(self, box: Box) -> Float[Tensor, "... R K"]:
        """Scores with mask and bias, in memory that may be overwritten."""
        scores = self._scores(box)
        if self.bias is not None:
            scores.add_(self._select(self.bias, box))
        if self.masked is not None:
            scores[..., self.masked_columns].masked_fill_(self._select(self.masked, box), -torch.inf)
        return scores

    def _scores(self, box: Box) -> Float[Tensor, "... R K"]:
        """Scores without mask and bias, in memory that may be overwritten."""
        score, scale, dtype = self.call.score, self.call.scale, compute_dtype(self.call)
        if parameters := score.tensors():
            common = _common_dtype(self.queries, *parameters)
            scores = score.block(self.queries.to(common), self.keys.to(common))
            return self._select(scores, box).to(dtype).contiguous()
        queries, keys = (self._select(side, box) for side in (self.queries, self.keys))
        shape = (*queries.shape[:-1], keys.shape[-2])
        queries, keys = (side.reshape(_size(box), *side.shape[-2:]).to(dtype) for side in (queries, keys))
        if scale is None:
            return score.block(queries, keys).view(shape)
        scores = scratch.empty(torch.Size((_size(box), *shape[-2:])), like=keys)
        return torch.bmm(queries * scale, keys.mT, out=scores).view(shape)

    def _bias(self, span: range) -> Float[Tensor, "... R K"]:
        bias, queries = self.call.bias, self.call.queries[..., span.start : span.stop, :]
        assert bias is not None
        if bias.reads_queries:
            queries = queries.to(_common_dtype(queries, *bias.tensors()))
        return _expand(bias.block(queries, span, self.columns), span, self.columns)

    def _masked(self, span: range) -> Bool[Tensor, "... R K"]:
        call = self.call
        assert call.mask is not None
        allowed = call.mask.block(span, self.columns, len(call.leading), call.queries.device)
        return _expand(~allowed, span, self.columns)

    def _select(self, tensor: Tensor, box: Box) -> Tensor:
        """The part of some examples and heads; the tensor may broadcast to all of them."""
        return tensor.expand(*self.call.leading, *tensor.shape[-2:])[box]


def _concatenate(parts: list[Tensor]) -> Tensor:
    """Concatenate the rows of several spans."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def _expand(tensor: Tensor, rows: range, columns: range) -> Tensor:
    """Expand a block that has one row or one column for all."""
    return tensor.expand(*tensor.shape[:-2], len(rows), len(columns))


def _common_dtype(*tensors: Tensor) -> torch.dtype:
    return reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
