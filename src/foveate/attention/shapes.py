"""Helpers for shapes, blocks and precision."""

import torch
from torch import Tensor


def broadcast(*shapes: tuple[int, ...]) -> torch.Size:
    """The shape that all of them broadcast to. Raises RuntimeError if there is none.

    `torch.broadcast_shapes` takes about 50 microseconds even for equal shapes, as long as attention in one step of
    decoding, and its first call imports sympy: a tenth of the time in which a short command starts. Sizes that are
    symbols, as in an export, are left to it.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return torch.Size(first)
    if any(type(size) is not int for shape in shapes for size in shape):
        return torch.broadcast_shapes(*shapes)
    rank = max(map(len, shapes))
    found = []
    for sizes in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise RuntimeError(f"the shapes {', '.join(str(tuple(shape)) for shape in shapes)} do not broadcast")
        found.append(others.pop() if others else 1)
    return torch.Size(found)


def precise(tensor: Tensor) -> Tensor:
    """The tensor in single precision at least: half precision cannot count beyond a few hundred keys."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def cut(tensor: Tensor, rows: range, columns: range) -> Tensor:
    """The block of a tensor (..., T or 1, S or 1) at these rows and columns."""
    if tensor.shape[-1] > 1:
        tensor = tensor[..., columns.start : columns.stop]
    if tensor.shape[-2] > 1:
        tensor = tensor[..., rows.start : rows.stop, :]
    return tensor


def joined_heads(tensor: Tensor, heads: int) -> Tensor:
    """A tensor (..., H, T, S) whose heads may be in groups, (..., G, H / G, T, S), with one dimension for all of them.

    Raises ValueError if no last dimensions before T have this many.
    """
    for first in range(tensor.ndim - 3, -1, -1):
        if tensor.shape[first:-2].numel() == heads:
            return tensor.flatten(first, -3)
    raise ValueError(f"a tensor of shape {tuple(tensor.shape)} does not have {heads} heads: it must be (..., H, T, S)")


def grouped_heads(shape: torch.Size, sizes: tuple[int, ...]) -> torch.Size:
    """A shape (..., H or 1, T, S) with the heads in groups of these `sizes`, (..., G, H / G, T, S); (T, S) stays."""
    if len(shape) < 3:
        return shape
    return torch.Size((*shape[:-3], *((1,) * len(sizes) if shape[-3] == 1 else sizes), *shape[-2:]))


def positions_in(span: range, device: torch.device) -> Tensor:
    """The positions of a span as a tensor."""
    return torch.arange(span.start, span.stop, device=device)
