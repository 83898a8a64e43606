"""Changes of attention: what `foveate.change` does to the calls of a site.

Each makes another `Call` of the model's own, so that any kernel can run it and a look shows it. Heads, queries and keys
are numbers, several numbers or a slice; by default a change is of all.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from foveate.attention.biases import Bias
from foveate.attention.call import Call
from foveate.attention.masks import Mask
from foveate.attention.scores import ScaledDot, Score
from foveate.attention.shapes import cut
from foveate.errors import MOST, UserError, at_least, of_kind, whole_number
from foveate.sight.call_adapter import MASKED_BELOW
from foveate.sight.given_weights import GivenWeights
from foveate.sight.site import Site

Chosen = int | Sequence[int] | slice | None
"""Numbers of heads, queries or keys; None for all."""


@dataclass(frozen=True)
class Where:
    """The place of a call in its site's map."""

    site: str
    first: int
    """The position of its first query."""


class Change(ABC):
    """A change of every call of a site."""

    def __post_init__(self) -> None:
        for name in ("heads", "queries", "keys"):
            _check_chosen(name, getattr(self, name, None))

    @abstractmethod
    def __call__(self, call: Call, where: Where) -> Call | None:
        """The call to make instead; None where there is nothing to change in this one. Raises UserError if it cannot
        be."""


@dataclass(frozen=True)
class Knock(Change):
    """Take heads out, or edges: from `queries` to `keys`. The other keys of a query share its weights.

    A query without any key left gets zeros, and so does each query of a head without `queries` and `keys`.
    """

    heads: Chosen = None
    _: KW_ONLY
    queries: Chosen = None
    keys: Chosen = None

    def __call__(self, call: Call, where: Where) -> Call | None:
        edges = _edges(self, call, where)
        if edges is None:
            return None
        hidden = _Hidden(edges)
        return replace(call, mask=hidden if call.mask is None else call.mask & hidden, projected=False)


@dataclass(frozen=True)
class Redirect(Change):
    """Send attention to some keys: the weights of all others are multiplied by `others`, and all sum to 1 again.

    PASTA (Zhang et al. 2023, https://arxiv.org/abs/2311.02262) does this to some heads with `others=0.01`.
    """

    keys: Chosen
    _: KW_ONLY
    others: float = 0.01
    heads: Chosen = None
    queries: Chosen = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, "others", self.others)
        if not 0 < self.others < math.inf:
            raise UserError(f"others is a factor above 0, not {self.others:g}; Knock(keys=...) removes keys")

    def __call__(self, call: Call, where: Where) -> Call | None:
        edges = _edges(self, call, where)
        if edges is None:
            return None
        bias = _Added(replace(edges, keys=~edges.keys), math.log(self.others))
        return replace(call, bias=bias if call.bias is None else call.bias + bias, projected=False)


@dataclass(frozen=True)
class Sharpen(Change):
    """Multiply the scores of heads: above 1, they look at fewer keys; below 1, at more."""

    by: float
    heads: Chosen = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_factor(self.by)

    def __call__(self, call: Call, where: Where) -> Call:
        factor = _factors(self.heads, self.by, call, where)
        bias = None if call.bias is None else _Times(call.bias, factor)
        if isinstance(call.score, ScaledDot):  # so that the fused kernel may run
            return replace(call, queries=call.queries * factor, bias=bias, projected=False)
        return replace(call, score=_TimesScore(call.score, factor), bias=bias, projected=False)


def Flatten(heads: Chosen = None) -> Sharpen:
    """Let heads look at all keys alike that their mask allows."""
    return Sharpen(0.0, heads)


@dataclass(frozen=True)
class Scale(Change):
    """Multiply what heads give; their weights stay as they are."""

    by: float
    heads: Chosen = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_factor(self.by)

    def __call__(self, call: Call, where: Where) -> Call:
        factor = _factors(self.heads, self.by, call, where).to(call.values.dtype)
        return replace(call, values=call.values * factor, projected=False)


@dataclass(frozen=True, eq=False)
class Patch(Change):
    """Put queries or keys of another input in, as a look at it recorded them in the site `of`."""

    of: Site
    heads: Chosen = None
    _: KW_ONLY
    queries: bool = False
    keys: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        of_kind(Site, "what is put in", self.of, "a site of a look")
        if not (self.queries or self.keys):
            raise UserError("say what to put in: Patch(site, queries=True), keys=True, or both")
        if self.of.keys is None or len(self.of.calls) != 1:
            why = "has measures alone" if self.of.keys is None else f"has {len(self.of.calls)} calls, not one"
            raise UserError(f"the look at {self.of.name} {why}: look at one run of the model, without keep=...")
        if isinstance(self.of.calls[0].call.select, GivenWeights):
            raise UserError(f"{self.of.name} makes its weights itself: it has no queries and keys to put in")

    def __call__(self, call: Call, where: Where) -> Call:
        assert self.of.keys is not None
        recorded = self.of.calls[0]
        queries, keys = call.queries, call.keys
        if self.queries:
            queries = self._put_in(recorded.call.queries, queries, "queries", call, where)
        if self.keys:
            keys = self._put_in(self.of.keys.read(recorded.span), keys, "keys", call, where)
        return replace(call, queries=queries, keys=keys, projected=False)

    def _put_in(self, new: Tensor, old: Tensor, name: str, call: Call, where: Where) -> Tensor:
        if old.shape[1:] != new.shape[1:] or new.shape[0] not in (1, old.shape[0]):
            raise UserError(
                f"{where.site} has {name} of shape {tuple(old.shape)} here and {tuple(new.shape)} in the look: both "
                "inputs need the same number of tokens"
            )
        heads = _factors(self.heads, 1.0, call, where, others=0.0).bool()
        return torch.where(heads, new.to(old), old)


# -- which part of a call


def _check_factor(by: float) -> None:
    at_least(-math.inf, "by", by)
    if not math.isfinite(by):
        raise UserError(f"by is {by}, but must be a finite number")


def _check_chosen(name: str, chosen: Any) -> None:
    """Raise UserError for what are no numbers of heads, queries or keys."""
    if isinstance(chosen, slice):
        numbers: Iterable[Any] = [bound for bound in (chosen.start, chosen.stop, chosen.step) if bound is not None]
    else:
        numbers = chosen if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]
    for number in numbers if chosen is not None else ():
        whole_number(name, number, least=-MOST)


@dataclass(frozen=True, eq=False)
class _Edges:
    """Chosen heads, queries and keys of a call."""

    heads: Bool[Tensor, "... 1 1"]
    queries: Bool[Tensor, "T 1"]
    keys: Bool[Tensor, "1 S"]
    rowwise: bool
    """Whether queries differ."""

    def block(self, rows: range, columns: range) -> Bool[Tensor, "... T S"]:
        return self.heads & cut(self.queries, rows, columns) & cut(self.keys, rows, columns)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.heads, self.queries, self.keys


def _edges(change: Any, call: Call, where: Where) -> _Edges | None:
    """The edges that a change with heads, queries and keys is about; None if none is in this call."""
    steps, count, device = call.queries.shape[-2], call.keys.shape[-2], call.queries.device
    queries, keys = (torch.zeros(size, dtype=torch.bool) for size in (steps, count))
    queries[_numbers(change.queries, where.first, steps)] = True
    keys[_numbers(change.keys, 0, count)] = True
    if not (queries.any() and keys.any()):
        return None
    heads = _factors(change.heads, 1.0, call, where, others=0.0).bool()
    return _Edges(heads, queries[:, None].to(device), keys[None].to(device), not bool(queries.all()))


def _numbers(chosen: Chosen, first: int, count: int) -> list[int]:
    """Places, from 0, of the chosen ones among the numbers `first` to `first + count`."""
    if chosen is None:
        return list(range(count))
    if isinstance(chosen, slice):
        numbers: Sequence[int] = range(first + count)[chosen]
    else:
        numbers = [chosen] if isinstance(chosen, int) else chosen
    return [number - first for number in numbers if 0 <= number - first < count]


def _factors(heads: Chosen, factor: float, call: Call, where: Where, others: float = 1.0) -> Float[Tensor, "... 1 1"]:
    """A factor for some heads, another one for all others, in the dimensions of the call's heads."""
    shape = call.leading[1:]
    count = shape.numel()
    if isinstance(heads, slice):
        heads = range(count)[heads]
    wanted = [heads] if isinstance(heads, int) else heads
    found = torch.full((count,), factor if wanted is None else others, dtype=call.queries.dtype)
    for head in wanted or ():
        if not -count <= head < count:
            raise UserError(f"{where.site} has {count} heads, 0 to {count - 1}: there is no head {head}")
        found[head] = factor
    return found.reshape(*shape, 1, 1).to(call.queries.device)


# -- what is put into a call


@dataclass(frozen=True, eq=False)
class _Hidden(Mask):
    """Hides edges."""

    edges: _Edges

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return ~self.edges.block(rows, columns)

    @property
    def rowwise(self) -> bool:
        return self.edges.rowwise

    def shape(self, leading: int) -> torch.Size:
        return self.edges.heads.shape

    def tensors(self) -> tuple[Tensor, ...]:
        return self.edges.tensors()


@dataclass(frozen=True, eq=False)
class _Added(Bias):
    """A number for some edges."""

    edges: _Edges
    number: float

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        return self.edges.block(rows, columns).to(queries.dtype) * self.number

    def tensors(self) -> tuple[Tensor, ...]:
        return self.edges.tensors()

    def shape(self) -> torch.Size:
        return self.edges.heads.shape


@dataclass(frozen=True, eq=False)
class _Times(Bias):
    """A bias times a factor of each head; numbers that hide keys stay as they are."""

    bias: Bias
    factor: Float[Tensor, "... 1 1"]

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        added = self.bias.block(queries, rows, columns)
        return torch.where(added < MASKED_BELOW, added, added * self.factor.to(added.dtype))

    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.bias.tensors(), self.factor)

    @property
    def reads_queries(self) -> bool:
        return self.bias.reads_queries

    def shape(self) -> torch.Size:
        return self.bias.shape()


@dataclass(frozen=True, eq=False)
class _TimesScore(Score):
    """Scores times a factor of each head."""

    score: Score
    factor: Float[Tensor, "... 1 1"]

    def fits(self, query_width: int, key_width: int) -> bool:
        return self.score.fits(query_width, key_width)

    def footprint(self, width: int) -> int:
        return self.score.footprint(width)

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        scores = self.score.block(queries, keys)
        return scores * self.factor.to(scores.dtype)

    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.score.tensors(), self.factor)
