"""Masks of long texts, in which most queries see few keys; joined by `|` and `&` they are those of the papers."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.attention.masks import Mask, PositionalMask, window
from foveate.attention.shapes import grouped_heads, positions_in


def strided(step: int, start: int = 0) -> Mask:
    """Query i is at position `start + i` and may look at keys that lie a multiple of `step` away (Child et al. 2019,
    https://arxiv.org/abs/1904.10509): `window(r) & strided(2)` is a dilated window."""
    return _Strided(step, start)


def leading(count: int) -> Mask:
    """The first `count` keys may be looked at."""
    return _Leading(count, of_queries=False)


def looking(count: int) -> Mask:
    """The first `count` queries may look at all keys."""
    return _Leading(count, of_queries=True)


def blocks(allowed: Bool[Tensor, "... R C"], size: int) -> Mask:
    """Queries and keys in blocks of `size`, and which blocks of keys each block of queries may look at. Dimensions
    before R broadcast to the leading dimensions of the call."""
    return _Blocks(allowed, size)


def longformer(radius: int, count: int) -> Mask:
    """A window, and the first `count` places, which see and are seen by all (Beltagy et al. 2020,
    https://arxiv.org/abs/2004.05150)."""
    return window(radius) | leading(count) | looking(count)


def big_bird(length: int, size: int, chosen: int, generator: torch.Generator | None = None) -> Mask:
    """Blocks of `size` places: the first one sees and is seen by all, the others see their neighbours and `chosen`
    blocks by chance (Zaheer et al. 2020, https://arxiv.org/abs/2007.14062)."""
    count = -(-length // size)
    places = torch.arange(count)
    allowed = (places[:, None] - places).abs() <= 1
    drawn = torch.rand(count, count, generator=generator).argsort(-1)[:, :chosen]
    allowed = allowed.scatter(1, drawn, True)
    allowed[0], allowed[:, 0] = True, True
    return blocks(allowed, size)


def chosen_blocks(
    queries: Float[Tensor, "... T D"], keys: Float[Tensor, "... S D"], size: int, count: int, start: int = 0
) -> Mask:
    """Query i, at position `start + i`, sees the block of `size` places that it is in, and those `count` blocks before
    it whose mean key has the largest dot product with the query (Lu et al. 2025, https://arxiv.org/abs/2502.13189; the
    selected blocks of native sparse attention, Yuan et al. 2025, https://arxiv.org/abs/2502.11089). For causal
    attention: join it with `causal(start)`. For a choice of a group of heads together, pass the mean of their queries.
    """
    with torch.no_grad():
        whole = keys.shape[-2] // size
        means = keys[..., : whole * size, :].unflatten(-2, (whole, size)).mean(-2)
        own = (torch.arange(queries.shape[-2], device=queries.device)[:, None] + start) // size
        later = torch.arange(whole, device=queries.device) >= own
        products, places = (queries @ means.mT).masked_fill(later, -torch.inf).topk(min(count, whole), -1)
        places = torch.where(products == -torch.inf, own, places)
        return _ChosenBlocks(torch.cat([places, own.expand(*places.shape[:-1], 1)], -1), size)


@dataclass(frozen=True)
class _Strided(PositionalMask):
    step: int
    start: int

    def allows(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (keys - queries - self.start) % self.step == 0


@dataclass(frozen=True)
class _Leading(PositionalMask):
    count: int
    of_queries: bool

    def allows(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries if self.of_queries else keys) < self.count

    @property
    def rowwise(self) -> bool:
        return self.of_queries

    def reach(self, rows: range, keys: int) -> range:
        if self.of_queries:
            return range(keys if rows.start < self.count else 0)
        return range(min(keys, self.count))


@dataclass(frozen=True, eq=False)
class _Blocks(Mask):
    allowed: Tensor
    size: int

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        down, across = (positions_in(span, device) // self.size for span in (rows, columns))
        return self.allowed.to(device)[..., down[:, None], across]

    def in_groups(self, *sizes: int) -> Mask:
        return _Blocks(self.allowed.reshape(grouped_heads(self.allowed.shape, sizes)), self.size)

    def shape(self, leading: int) -> torch.Size:
        return torch.Size((*self.allowed.shape[:-2], 1, 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.allowed,)


@dataclass(frozen=True, eq=False)
class _ChosenBlocks(Mask):
    places: Int[Tensor, "... T N"]
    """Numbers of the blocks that each query may look at."""
    size: int

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        across = positions_in(columns, device) // self.size
        first, count = columns.start // self.size, len(columns) // self.size + 2
        places = self.places[..., rows.start : rows.stop, :] - first
        outside = (places < 0) | (places >= count)
        allowed = torch.zeros(*places.shape[:-1], count + 1, dtype=torch.bool, device=device)
        return allowed.scatter_(-1, places.masked_fill(outside, count), True)[..., across - first]

    def in_groups(self, *sizes: int) -> Mask:
        return _ChosenBlocks(self.places.reshape(grouped_heads(self.places.shape, sizes)), self.size)

    def shape(self, leading: int) -> torch.Size:
        return torch.Size((*self.places.shape[:-1], 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.places,)
