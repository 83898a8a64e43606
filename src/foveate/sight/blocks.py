"""The weights of a call block by block: whole rows of some heads, few enough to stay in the cache.

Every measure is made of these blocks, each computed once for all measures that are asked for. A block has all keys that
its queries may reach, so that their sum is known: no second pass, no log-sum-exp to know beforehand.
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
from foveate.attention.call import Call
from foveate.attention.selection import quick_weights

BLOCK = 2**21
"""How many weights a block holds at most, unless a single row has more."""

HEIGHT = 128
"""So many rows a block has where it can: the keys are read once for each block."""

Box = tuple[slice, ...]
"""Some examples and heads: a span of each of the leading dimensions."""


@dataclass
class Block:
    """The weights of some heads and queries, on the keys that these queries may reach."""

    box: Box
    """Which examples and heads, among the chosen ones."""
    rows: slice
    """Which queries, among the chosen ones."""
    columns: slice
    """Which keys; on all others the weight is 0."""
    scores: Float[Tensor, "... R K"]
    """What the weights are the softmax of, -inf where a key is hidden."""
    weights: Float[Tensor, "... R K"]

    def of_queries(self, found: Tensor) -> Tensor:
        """This block's part, a view, of what is found for each query, (..., T, ...)."""
        return found[*self.box, self.rows]

    def of_keys(self, found: Tensor) -> Tensor:
        """This block's part, a view, of what is found for each key, (..., S)."""
        return found[*self.box, self.columns]


class Measure(ABC):
    """Something to tell of one call, taken from its weights block by block. An object serves once."""

    @abstractmethod
    def start(self, call: Call) -> None:
        """Make room for what is found; weights that come in no block are 0."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Take in some of the weights. They are not to be changed nor kept: the next block uses their memory."""

    @abstractmethod
    def result(self) -> Any:
        """What was found, for (B, H) examples and heads."""


def room(call: Call, *shape: int) -> Tensor:
    """Zeros for each example and head, in single precision at least."""
    return call.queries.new_zeros(*call.leading, *shape, dtype=exact(call))


def by_head(found: Tensor, leading: int) -> Shaped[Tensor, "B H ..."]:
    """What has so many leading dimensions, with two of them: examples and heads."""
    sizes = found.shape[:leading]
    return found.reshape(*(sizes[:1] or (1,)), math.prod(sizes[1:]), *found.shape[leading:])


def exact(call: Call) -> torch.dtype:
    """The type to compute in: single precision at least."""
    return torch.promote_types(call.queries.dtype, torch.float32)


@contextmanager
def alone(call: Call) -> Iterator[None]:
    """Without gradients and autocast, and with memory that one block uses after the other."""
    with torch.no_grad(), torch.autocast(call.queries.device.type, enabled=False), scratch.reuse():
        yield


def blocks(call: Call, queries: Sequence[int] | None = None, box: Box | None = None) -> Iterator[Block]:
    """The weights of the chosen queries, examples and heads (by default all), to be used `alone`.

    Blocks of queries that may reach no key are left out.
    """
    queries = range(call.queries.shape[-2]) if queries is None else queries
    box = tuple(slice(0, size) for size in call.leading) if box is None else box
    if not _size(box) or not len(queries):
        return
    row = call.keys.shape[-2] * call.score.footprint(call.queries.shape[-1])
    # A score that holds tensors may hold one for each head, which only it can tell apart.
    together = _size(box) if call.score.tensors() else 1
    most = max(1, BLOCK // max(1, row * together))
    height = min(HEIGHT, most, len(queries))
    parts = list(_parts(box, max(together, most // height)))
    # Under a causal mask the last queries reach most keys: what is large enough for them is so for all others.
    for start in reversed(range(0, len(queries), height)):
        over = slice(start, min(len(queries), start + height))
        spans = _spans(queries[over])
        if reach := _reach(call, spans):
            rows = _Rows(call, spans, reach)
            for part in parts:
                within = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, box, strict=True))
                yield Block(within, over, slice(reach.start, reach.stop), *rows.scores_and_weights(part))


def _size(box: Box) -> int:
    return math.prod(part.stop - part.start for part in box)


def _parts(box: Box, most: int) -> Iterator[Box]:
    """The box in parts of at most so many heads, those of several examples counted together."""
    if _size(box) <= most:
        yield box
        return
    first, *others = box
    step = max(1, most // _size(tuple(others)))
    for start in range(first.start, first.stop, step):
        for rest in _parts(tuple(others), most):
            yield (slice(start, min(first.stop, start + step)), *rest)


def _spans(places: Sequence[int]) -> list[range]:
    """The places as spans of neighbours, in their order."""
    if isinstance(places, range):
        return [places]
    starts = [at for at, place in enumerate(places) if at == 0 or place != places[at - 1] + 1]
    return [
        range(places[at], places[at] + end - at) for at, end in zip(starts, [*starts[1:], len(places)], strict=True)
    ]


def _reach(call: Call, spans: list[range]) -> range:
    """A span of keys outside of which none of these queries may look."""
    total = call.keys.shape[-2]
    if call.mask is None:
        return range(total)
    reaches = [reach for span in spans if (reach := call.mask.reach(span, total))] or [range(0)]
    return range(min(reach.start for reach in reaches), max(reach.stop for reach in reaches))


class _Rows:
    """Some queries of all heads, the keys that they may reach, and all that decides who looks at what."""

    def __init__(self, call: Call, spans: list[range], columns: range) -> None:
        self.call, self.spans, self.columns = call, spans, columns
        self.queries = _joined([call.queries[..., span.start : span.stop, :] for span in spans])
        self.keys = call.keys[..., columns.start : columns.stop, :]
        self.added = None if call.bias is None else _joined([self._bias(span) for span in spans])
        self.hidden, self.hiding = None, slice(None)
        if call.mask is not None:
            hidden = _joined([self._hidden(span) for span in spans])
            places = hidden.flatten(0, -2).any(0).nonzero()
            if len(places):
                # Most masks hide keys at an end, and a causal one does so late: there is no need to go to the others.
                self.hiding = slice(int(places[0]), int(places[-1]) + 1)
                self.hidden = hidden[..., self.hiding]

    def scores_and_weights(self, box: Box) -> tuple[Float[Tensor, "... R K"], Float[Tensor, "... R K"]]:
        """Those of some examples and heads."""
        scratch.next_block()
        scores, sinks = self._scores(box), self.call.select.sinks
        if self.added is not None:
            scores.add_(self._cut(self.added, box))
        if self.hidden is not None:
            scores[..., self.hiding].masked_fill_(self._cut(self.hidden, box), -torch.inf)
        return scores, quick_weights(scores, None if sinks is None else sinks.expand(self.call.leading)[box])

    def _scores(self, box: Box) -> Float[Tensor, "... R K"]:
        """Raw scores, in memory of their own."""
        score, scale, kind = self.call.score, self.call.scale, exact(self.call)
        if learned := score.tensors():
            common = _common(self.queries, *learned)
            return self._cut(score.block(self.queries.to(common), self.keys.to(common)), box).to(kind).contiguous()
        queries, keys = (self._cut(side, box) for side in (self.queries, self.keys))
        shape = (*queries.shape[:-1], keys.shape[-2])
        queries, keys = (side.reshape(_size(box), *side.shape[-2:]).to(kind) for side in (queries, keys))
        if scale is None:
            return score.block(queries, keys).view(shape)
        scores = scratch.empty(torch.Size((_size(box), *shape[-2:])), like=keys)
        return torch.bmm(queries * scale, keys.mT, out=scores).view(shape)

    def _bias(self, span: range) -> Float[Tensor, "... R K"]:
        bias, queries = self.call.bias, self.call.queries[..., span.start : span.stop, :]
        assert bias is not None
        if bias.reads_queries:
            queries = queries.to(_common(queries, *bias.tensors()))
        return _filled(bias.block(queries, span, self.columns), span, self.columns)

    def _hidden(self, span: range) -> Bool[Tensor, "... R K"]:
        call = self.call
        assert call.mask is not None
        return _filled(~call.mask.block(span, self.columns, len(call.leading), call.queries.device), span, self.columns)

    def _cut(self, tensor: Tensor, box: Box) -> Tensor:
        """The part of some examples and heads of what broadcasts to all."""
        return tensor.expand(*self.call.leading, *tensor.shape[-2:])[box]


def _joined(parts: list[Tensor]) -> Tensor:
    """Rows of several spans, one below the other."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def _filled(tensor: Tensor, rows: range, columns: range) -> Tensor:
    """A block of full size, where one row or column stood for all."""
    return tensor.expand(*tensor.shape[:-2], len(rows), len(columns))


def _common(*tensors: Tensor) -> torch.dtype:
    return reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
