"""Biases: numbers added to the scores, possibly learned, possibly dependent on the query.

A bias and a mask have different types on purpose: a mask of zeros and ones, added by mistake, would hide nothing.
"""

import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from foveate.attention.shapes import broadcast, cut, grouped_heads, positions_in, precise
from foveate.errors import UserError


class Bias(ABC):
    """Numbers added to the scores, block by block. Must be deterministic: a backward pass may compute them again."""

    @abstractmethod
    def block(self, queries: Float[Tensor, "... T D"], rows: range, columns: range) -> Float[Tensor, "... T S"]:
        """The bias of the (prepared) queries `rows` for the keys `columns`; it broadcasts to their scores."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that `block` reads besides the queries."""
        return ()

    @property
    def reads_queries(self) -> bool:
        """Whether the bias depends on the queries."""
        return False

    def shape(self) -> torch.Size:
        """The shape that must broadcast to (leading dimensions of the call, T, S); empty if the bias fits any call."""
        return torch.Size()

    def __add__(self, other: "Bias | Tensor") -> "Bias":
        return _Sum((self, as_bias(other)))

    def in_groups(self, *sizes: int) -> "Bias":
        """The same bias for heads in groups of these `sizes`, (G, H / G): its heads are numbered group by group."""
        return _InGroups(self, sizes)


def as_bias(bias: "Bias | Tensor") -> Bias:
    """A `Bias` for a bias or a floating-point tensor (..., T or 1, S or 1). Raises TypeError for anything else."""
    if isinstance(bias, Bias):
        return bias
    if isinstance(bias, Tensor) and bias.is_floating_point():
        return _Given(torch.atleast_2d(bias))
    kind = str(bias.dtype) if isinstance(bias, Tensor) else type(bias).__name__
    raise TypeError(f"a bias holds floating-point numbers, not {kind}; to hide keys pass mask=...")


@dataclass(frozen=True, eq=False)
class _Given(Bias):
    tensor: Tensor

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        return cut(self.tensor, rows, columns)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def shape(self) -> torch.Size:
        return self.tensor.shape


@dataclass(frozen=True, eq=False)
class _InGroups(Bias):
    bias: Bias
    sizes: tuple[int, ...]

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        if self.reads_queries:
            queries = queries.flatten(-2 - len(self.sizes), -3)
        found = self.bias.block(queries, rows, columns)
        return found.reshape(grouped_heads(found.shape, self.sizes))

    def tensors(self) -> tuple[Tensor, ...]:
        return self.bias.tensors()

    @property
    def reads_queries(self) -> bool:
        return self.bias.reads_queries

    def shape(self) -> torch.Size:
        return grouped_heads(self.bias.shape(), self.sizes)


@dataclass(frozen=True, eq=False)
class _Sum(Bias):
    parts: tuple[Bias, Bias]

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        first, second = (part.block(queries, rows, columns) for part in self.parts)
        return first + second

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(tensor for part in self.parts for tensor in part.tensors())

    @property
    def reads_queries(self) -> bool:
        return any(part.reads_queries for part in self.parts)

    def shape(self) -> torch.Size:
        return broadcast(*(part.shape() for part in self.parts))


class PositionalBias(Bias):
    """A bias that the head and the positions of a query and a key decide alone. Its `shape` begins with the heads."""

    @abstractmethod
    def at(
        self, heads: Int[Tensor, ""] | slice, queries: Int[Tensor, "..."], keys: Int[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """The numbers of a head, or of these heads as a first dimension, for queries at these positions and keys at
        those. Heads in groups are numbered group by group."""

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        own, others = (positions_in(span, queries.device) for span in (rows, columns))
        found = self.at(slice(None), own[:, None], others)
        return found.reshape(*self.shape()[:-2], *found.shape[1:])


@dataclass(frozen=True, eq=False)
class LinearDistance(PositionalBias):
    """`-slope * |i - j|` for each head (ALiBi, Press et al. 2022); query i is at position `start + i`.

    `slopes` has the last of the leading dimensions: (H,), or (G, H/G) for grouped heads. Learned slopes are a parameter
    of the calling module, because this bias is not a module.
    """

    slopes: Float[Tensor, "..."]
    start: int = 0

    def distance(self, queries: Int[Tensor, "..."], keys: Int[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """How far it is from queries to keys at these positions."""
        return (keys - queries - self.start).abs()

    def at(self, heads: Tensor | slice, queries: Tensor, keys: Tensor) -> Tensor:
        slopes, distance = precise(self.slopes).flatten()[heads], self.distance(queries, keys)
        return -slopes.reshape((*slopes.shape, *(1,) * distance.ndim)) * distance

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.slopes,)

    def shape(self) -> torch.Size:
        return torch.Size((*self.slopes.shape, 1, 1))


@dataclass(frozen=True, eq=False)
class Gaussian(Bias):
    """`-(j - centre_i)^2 / (2 deviation^2)`: multiplies the weights by a Gaussian around the centre of each query.

    The weights sum to 1, unlike in Luong et al. 2015, equation 10. `centres` are positions of keys, possibly fractions.
    Dimensions before T broadcast to the leading dimensions.
    """

    centres: Float[Tensor, "... T"]
    deviation: float

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        distance = positions_in(columns, queries.device) - cut(precise(self.centres)[..., None], rows, columns)
        return -(distance / self.deviation).square() / 2

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.centres,)

    def shape(self) -> torch.Size:
        return torch.Size((*self.centres.shape, 1))


Relative = TypeVar("Relative", bound="_Learned")


class _Learned(nn.Module, Bias):
    """A parameter for each distance `j - i`, clamped to a radius; query i is at position `start + i`."""

    start = 0

    def with_start(self: Relative, start: int) -> Relative:
        """Returns the same bias, with the same parameters, for queries from position `start` on, as in decoding."""
        shifted = copy(self)
        shifted.start = start
        return shifted


class RelativePosition(_Learned, PositionalBias):
    """A learned number for each head and distance `j - i`, clamped to `radius` (as in T5, without buckets)."""

    def __init__(self, heads: int, radius: int) -> None:
        super().__init__()
        self.radius = radius
        self.table = nn.Parameter(torch.zeros(heads, 2 * radius + 1))

    def index(self, distances: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """The places of the table that hold the numbers of these distances."""
        return distances.clamp(-self.radius, self.radius) + self.radius

    def at(self, heads: Tensor | slice, queries: Tensor, keys: Tensor) -> Tensor:
        return self.table[heads, self.index(keys - queries - self.start)]

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    def shape(self) -> torch.Size:
        return torch.Size((len(self.table), 1, 1))


class BucketedPosition(RelativePosition):
    """A learned number for each head and bucket of distances (T5, Raffel et al. 2020,
    https://arxiv.org/abs/1910.10683).

    Half of the buckets are for one distance each; the others are for ranges that grow up to `farthest`, and the last
    has all distances beyond. On `both_sides`, keys before a query and behind it have half of the buckets each; else all
    keys behind it are in the bucket of its own place.
    """

    def __init__(self, heads: int, buckets: int, farthest: int, both_sides: bool) -> None:
        nn.Module.__init__(self)
        one_side = buckets // 2 if both_sides else buckets
        if one_side < 2 or farthest <= one_side // 2:
            raise UserError(f"{buckets} buckets cannot hold distances up to {farthest}: take at least 4, and fewer")
        self.buckets, self.farthest, self.both_sides = one_side, farthest, both_sides
        self.table = nn.Parameter(torch.zeros(heads, buckets))

    def index(self, distances: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        behind = (distances > 0).long() * self.buckets if self.both_sides else 0
        distance = distances.abs() if self.both_sides else -distances.clamp(max=0)
        exact = self.buckets // 2
        share = (distance.clamp(min=1).float() / exact).log() / math.log(self.farthest / exact)
        wide = (exact + (share * (self.buckets - exact)).long()).clamp(max=self.buckets - 1)
        return torch.where(distance < exact, distance, wide) + behind


class RelativeKeys(_Learned):
    """`scale * q_i · r_(j - i)` with a learned vector for each distance up to `radius` (Shaw et al. 2018)."""

    def __init__(self, width: int, radius: int, scale: float | None = None) -> None:
        super().__init__()
        self.radius = radius
        self.scale = width**-0.5 if scale is None else scale
        self.table = nn.Parameter(torch.empty(2 * radius + 1, width))
        nn.init.xavier_uniform_(self.table)

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        own, others = (positions_in(span, queries.device) for span in (rows, columns))
        distance = (others - own[:, None] - self.start).clamp(-self.radius, self.radius) + self.radius
        products = queries @ self.table.T * self.scale
        return products.gather(-1, distance.expand(*products.shape[:-1], -1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    @property
    def reads_queries(self) -> bool:
        return True
