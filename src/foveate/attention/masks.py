"""Masks: which keys a query may look at. True means that it may; masks are combined with `&` and `|`.

A mask is a description, not a tensor. A kernel asks for a block of rows and columns at a time, so all T x S booleans
exist only if they fit into one block. Causality from the first key is a flag for kernels that know it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.attention.shapes import broadcast, cut, grouped_heads, positions_in, precise


class Mask(ABC):
    """A description of the keys that each query may look at."""

    @abstractmethod
    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        """Booleans for the queries `rows` and the keys `columns`.

        They broadcast to (leading dimensions of the call, T, S). `leading` is the number of leading dimensions.
        """

    def reach(self, rows: range, keys: int) -> range:
        """A span of keys that contains all keys that these queries may look at. Kernels skip the others."""
        return range(keys)

    @property
    def rowwise(self) -> bool:
        """Whether the mask differs between queries."""
        return True

    @property
    def positional(self) -> bool:
        """Whether the positions of a query and a key decide alone, as `allows` tells."""
        return False

    def allows(self, queries: Int[Tensor, "..."], keys: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Of a mask that is positional: whether queries at these positions may look at keys at those."""
        raise NotImplementedError

    def shape(self, leading: int) -> torch.Size:
        """The shape that must broadcast to (leading dimensions of the call, T, S); empty if the mask fits any call."""
        return torch.Size()

    def same_as(self, other: "Mask | None") -> bool:
        """Returns whether another mask is known to hide the same keys, as long as no tensor is written to."""
        return self is other

    def min_keys(self) -> int:
        """The smallest number of keys that the mask fits; 0 if it fits any number."""
        return 0

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that `block` reads."""
        return ()

    def in_groups(self, *sizes: int) -> "Mask":
        """The same mask for heads in groups of these `sizes`, (G, H / G); one that knows no heads is itself."""
        return self

    def __or__(self, other: "Mask | Tensor") -> "Mask":
        return _Any((self, as_mask(other)))

    def __ror__(self, other: "Mask | Tensor") -> "Mask":
        return _Any((as_mask(other), self))

    def __and__(self, other: "Mask | Tensor") -> "Mask":
        return _All((*_parts(self), *_parts(as_mask(other))))

    def __rand__(self, other: "Mask | Tensor") -> "Mask":
        return _All((*_parts(as_mask(other)), *_parts(self)))


def as_mask(mask: "Mask | Tensor") -> Mask:
    """A `Mask` for a mask or a boolean tensor (..., T or 1, S or 1). Raises TypeError for anything else."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        return _Given(torch.atleast_2d(mask))
    if callable(mask):
        name = getattr(mask, "__name__", "mask")
        raise TypeError(f"a mask must be called to be made: mask={name}(...), not mask={name}")
    kind = str(mask.dtype) if isinstance(mask, Tensor) else type(mask).__name__
    raise TypeError(f"a mask holds booleans (True: may look), not {kind}; to add numbers to the scores pass bias=...")


def causal(start: int = 0) -> Mask:
    """Query i is at position `start + i` and may look at the keys 0 to `start + i`."""
    return Causal(start)


def window(radius: int, start: int = 0) -> Mask:
    """Query i is at position `start + i` and may look at keys at most `radius` positions away: local attention."""
    return _Window(radius, start)


def around(centres: Float[Tensor, "... T"], radius: float) -> Mask:
    """Query i may look at keys at most `radius` positions away from its own centre (Luong et al. 2015, section 3.2).

    `centres` are positions of keys, possibly fractions. Dimensions before T broadcast to the leading dimensions.
    """
    return _Around(centres, radius)


def positional_part(mask: Mask | None) -> tuple[Mask | None, tuple[Mask, ...]]:
    """A mask as that of positions in it, None where there is none, and all others."""
    parts = () if mask is None else _parts(mask)
    positional = tuple(part for part in parts if part.positional)
    others = tuple(part for part in parts if not part.positional)
    return positional[0] if len(positional) == 1 else _All(positional) if positional else None, others


def causal_part(mask: Mask | None) -> tuple["Causal | None", Mask | None]:
    """A mask as the causal one in it and all others, None where there is none."""
    parts = () if mask is None else _parts(mask)
    steps = next((part for part in parts if isinstance(part, Causal)), None)
    others = tuple(part for part in parts if part is not steps)
    return steps, None if not others else others[0] if len(others) == 1 else _All(others)


class PositionalMask(Mask):
    """A mask that positions decide alone."""

    @property
    def positional(self) -> bool:
        return True

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "T S"]:
        return self.allows(positions_in(rows, device)[:, None], positions_in(columns, device)[None])


@dataclass(frozen=True)
class Causal(PositionalMask):
    """See `causal`."""

    start: int = 0

    def allows(self, queries: Tensor, keys: Tensor) -> Tensor:
        return keys <= queries + self.start

    def reach(self, rows: range, keys: int) -> range:
        return range(max(0, min(keys, rows.stop + self.start)))


@dataclass(frozen=True)
class _Window(PositionalMask):
    radius: int
    start: int

    def allows(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (keys - queries - self.start).abs() <= self.radius

    def reach(self, rows: range, keys: int) -> range:
        first, last = rows.start + self.start - self.radius, rows.stop + self.start + self.radius
        return range(min(keys, max(0, first)), max(0, min(keys, last)))


@dataclass(frozen=True, eq=False)
class _Around(Mask):
    centres: Tensor
    radius: float

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return (
            positions_in(columns, device) - cut(precise(self.centres)[..., None], rows, columns)
        ).abs() <= self.radius

    def in_groups(self, *sizes: int) -> Mask:
        return _Around(self.centres.reshape(grouped_heads(self.shape(0), sizes)[:-1]), self.radius)

    def shape(self, leading: int) -> torch.Size:
        return torch.Size((*self.centres.shape, 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.centres,)


@dataclass(frozen=True, eq=False)
class _Given(Mask):
    tensor: Tensor

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return cut(self.tensor, rows, columns)

    def in_groups(self, *sizes: int) -> Mask:
        return _Given(self.tensor.reshape(grouped_heads(self.tensor.shape, sizes)))

    @property
    def rowwise(self) -> bool:
        return self.tensor.shape[-2] > 1

    def shape(self, leading: int) -> torch.Size:
        return self.tensor.shape

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.tensor,)


@dataclass(frozen=True)
class _Joined(Mask):
    """Several masks, whose booleans are joined."""

    parts: tuple[Mask, ...]
    sign: ClassVar[str]

    @abstractmethod
    def join(self, one: Tensor, other: Tensor) -> Tensor:
        """The booleans of two parts as one."""

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return reduce(self.join, (part.block(rows, columns, leading, device) for part in self.parts))

    def in_groups(self, *sizes: int) -> Mask:
        return type(self)(tuple(part.in_groups(*sizes) for part in self.parts))

    @property
    def positional(self) -> bool:
        return all(part.positional for part in self.parts)

    def allows(self, queries: Tensor, keys: Tensor) -> Tensor:
        return reduce(self.join, (part.allows(queries, keys) for part in self.parts))

    def min_keys(self) -> int:
        return max(part.min_keys() for part in self.parts)

    @property
    def rowwise(self) -> bool:
        return any(part.rowwise for part in self.parts)

    def shape(self, leading: int) -> torch.Size:
        shapes = [part.shape(leading) for part in self.parts]
        try:
            return broadcast(*shapes)
        except RuntimeError:
            listed = " and ".join(str(tuple(shape)) for shape in shapes)
            raise ValueError(
                f"masks of the shapes {listed}, joined by {self.sign}, do not broadcast to one another"
            ) from None

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(tensor for part in self.parts for tensor in part.tensors())


class _All(_Joined):
    sign = "&"

    def join(self, one: Tensor, other: Tensor) -> Tensor:
        return one & other

    def reach(self, rows: range, keys: int) -> range:
        spans = [part.reach(rows, keys) for part in self.parts]
        start = max(span.start for span in spans)
        return range(start, max(start, min(span.stop for span in spans)))


def _parts(mask: Mask) -> tuple[Mask, ...]:
    """The masks that are joined by `&`."""
    return mask.parts if isinstance(mask, _All) else (mask,)


class _Any(_Joined):
    sign = "|"

    def join(self, one: Tensor, other: Tensor) -> Tensor:
        return one | other

    def reach(self, rows: range, keys: int) -> range:
        spans = [span for part in self.parts if (span := part.reach(rows, keys))]
        return range(min(span.start for span in spans), max(span.stop for span in spans)) if spans else range(0)
