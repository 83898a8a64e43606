"""Masks that are made of lengths: padding, and texts that are packed into one sequence."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from foveate.attention.masks import Mask
from foveate.attention.shapes import positions_in


def padding(lengths: Int[Tensor, "..."]) -> Mask:
    """Hides the keys after the first `lengths` of each example; lengths has the first of the leading dimensions."""
    if not isinstance(lengths, Tensor):
        raise TypeError(f"padding takes a tensor of lengths, not {type(lengths).__name__}: use torch.tensor(lengths)")
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise TypeError(f"padding takes a length for each example, not {lengths.dtype}; booleans are a mask themselves")
    return Padding(lengths)


def left_padding(counts: Int[Tensor, "..."]) -> Mask:
    """Hides the first `counts` keys of each example, which are padding; counts has the first of the leading
    dimensions."""
    return _LeftPadding(counts)


def segments(query_lengths: Int[Tensor, "P"], key_lengths: Int[Tensor, "P"] | None = None) -> Mask:
    """P texts packed into one sequence. A query may look only at keys of its own text."""
    return _Segments(query_lengths, query_lengths if key_lengths is None else key_lengths)


def same_text(numbers: Int[Tensor, "... T"]) -> Mask:
    """Texts packed one behind the other in each row; `numbers` says which text each place is of. A query may look only
    at keys of its own text. Dimensions before T are the first of the leading dimensions."""
    return _SameText(numbers)


@dataclass(frozen=True, eq=False)
class Padding(Mask):
    """See `padding`."""

    lengths: Tensor
    longest: list[int] = field(default_factory=list, repr=False)
    """The greatest length, computed once: one mask serves all layers of a model."""

    def min_keys(self) -> int:
        if not self.longest:
            self.longest.append(_greatest(self.lengths))
        return self.longest[0]

    def shows(self, keys: Int[Tensor, "..."], lengths: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Returns whether keys at these positions may be looked at in examples of these lengths."""
        return keys < lengths

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return self.shows(positions_in(columns, device), self.lengths.reshape(self.shape(leading)))

    @property
    def rowwise(self) -> bool:
        return False

    def same_as(self, other: Mask | None) -> bool:
        return type(other) is type(self) and isinstance(other, Padding) and other.lengths is self.lengths

    def shape(self, leading: int) -> torch.Size:
        return torch.Size((*self.lengths.shape, *(1,) * (leading - self.lengths.ndim), 1, 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.lengths,)


@dataclass(frozen=True, eq=False)
class _LeftPadding(Padding):
    def shows(self, keys: Tensor, lengths: Tensor) -> Tensor:
        return keys >= lengths


@dataclass(frozen=True, eq=False)
class _Segments(Mask):
    query_lengths: Tensor
    key_lengths: Tensor

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        own = _segment(self.query_lengths, positions_in(rows, device))
        other = _segment(self.key_lengths, positions_in(columns, device))
        return (own[:, None] == other) & (own[:, None] < len(self.query_lengths))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.query_lengths, self.key_lengths)


@dataclass(frozen=True, eq=False)
class _SameText(Mask):
    numbers: Tensor

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        own, other = (self.numbers[..., part.start : part.stop] for part in (rows, columns))
        return (own[..., :, None] == other[..., None, :]).reshape(*self.shape(leading)[:-2], len(rows), len(columns))

    def shape(self, leading: int) -> torch.Size:
        own = self.numbers.shape[:-1]
        return torch.Size((*own, *(1,) * (leading - len(own)), 1, 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.numbers,)


def _greatest(lengths: Tensor) -> int:
    """The greatest length; 0 if reading it costs too much or fails: on a GPU, while compiling, in fake tensors."""
    if lengths.device.type != "cpu" or torch.compiler.is_compiling() or not lengths.numel():
        return 0
    try:
        return int(lengths.max())
    except RuntimeError:
        return 0


def _segment(lengths: Tensor, positions: Tensor) -> Tensor:
    return torch.searchsorted(lengths.cumsum(0), positions, right=True)
