"""What is added to the scores: numbers, possibly learned, possibly dependent on the query.

A bias is another type than a mask on purpose: a mask of zeros and ones that is added by mistake hides nothing.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.shapes import cut, precise


class Bias(ABC):
    """Numbers added to the scores, given block by block: the same ones when a backward pass asks again."""

    @abstractmethod
    def block(self, queries: Float[Tensor, "... T D"], rows: range, columns: range) -> Float[Tensor, "... T S"]:
        """What is added where the (prepared) queries `rows` meet the keys `columns`; broadcasts to the scores."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that `block` reads besides the queries."""
        return ()

    @property
    def reads_queries(self) -> bool:
        """Whether the queries change what is added."""
        return False

    def shape(self) -> torch.Size:
        """The shape that has to broadcast to (leading dimensions of the call, T, S), as far as the bias has one."""
        return torch.Size()


def as_bias(bias: "Bias | Tensor") -> Bias:
    """A bias as it is, or a tensor of numbers, (..., T or 1, S or 1), made into one."""
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
class LinearDistance(Bias):
    """`-slope * |i - j|` for each head (ALiBi, Press et al. 2022); query i stands at `start + i`.

    `slopes` has the last of the leading dimensions: (H,), or (G, H/G) for heads in groups. Where they are learned, the
    module that attends has them as a parameter: this bias is no module.
    """

    slopes: Float[Tensor, "..."]
    start: int = 0

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        distance = _distances(rows, columns, self.start, queries.device).abs()
        return -precise(self.slopes)[..., None, None] * distance

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.slopes,)

    def shape(self) -> torch.Size:
        return torch.Size((*self.slopes.shape, 1, 1))


@dataclass(frozen=True, eq=False)
class Gaussian(Bias):
    """`-(j - centre_i)^2 / (2 deviation^2)`: the weights times a bell around each query's centre, then summing to 1.

    (Luong et al. 2015, equation 10, where they do not sum to 1.) `centres` are places among the keys, also between two
    of them; what is before T broadcasts to the leading dimensions.
    """

    centres: Float[Tensor, "... T"]
    deviation: float

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        keys = torch.arange(columns.start, columns.stop, device=queries.device)
        distance = keys - cut(precise(self.centres)[..., None], rows, columns)
        return -(distance / self.deviation).square() / 2

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.centres,)

    def shape(self) -> torch.Size:
        return torch.Size((*self.centres.shape, 1))


Relative = TypeVar("Relative", bound="_Learned")


class _Learned(nn.Module, Bias):
    """Something for each distance `j - i` up to a radius, the same beyond; query i stands at `start + i`."""

    start = 0

    def starting(self: Relative, start: int) -> Relative:
        """The same bias, of the same parameters, for queries of which the first stands at `start`, as in decoding."""
        shifted = copy(self)
        shifted.start = start
        return shifted


class RelativePosition(_Learned):
    """A learned number for each head and distance `j - i`, the same beyond `radius` (T5's idea, unbucketed)."""

    def __init__(self, heads: int, radius: int) -> None:
        super().__init__()
        self.radius = radius
        self.table = nn.Parameter(torch.zeros(heads, 2 * radius + 1))

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        distance = _distances(rows, columns, self.start, queries.device).clamp(-self.radius, self.radius)
        return self.table[:, distance + self.radius]

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    def shape(self) -> torch.Size:
        return torch.Size((len(self.table), 1, 1))


class RelativeKeys(_Learned):
    """`scale * q_i · r_(j - i)` with a learned vector for each distance up to `radius` (Shaw et al. 2018)."""

    def __init__(self, width: int, radius: int, scale: float | None = None) -> None:
        super().__init__()
        self.radius = radius
        self.scale = width**-0.5 if scale is None else scale
        self.table = nn.Parameter(torch.empty(2 * radius + 1, width))
        nn.init.xavier_uniform_(self.table)

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        distance = _distances(rows, columns, self.start, queries.device)
        distance = distance.clamp(-self.radius, self.radius) + self.radius
        products = queries @ self.table.T * self.scale
        return products.gather(-1, distance.expand(*products.shape[:-1], -1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    @property
    def reads_queries(self) -> bool:
        return True


def _distances(rows: range, columns: range, start: int, device: torch.device) -> Tensor:
    """`j - i` for the keys j of `columns` and the queries i of `rows`, (T, S)."""
    keys = torch.arange(columns.start, columns.stop, device=device)
    return keys - torch.arange(rows.start, rows.stop, device=device)[:, None] - start
