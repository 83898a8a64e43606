"""Helpers for shapes, blocks and precision."""

import torch
from torch import Tensor


def broadcast(shape: torch.Size, *others: tuple[int, ...]) -> torch.Size:
    """The shape that all of them broadcast to. Raises RuntimeError if there is none.

    `torch.broadcast_shapes` takes about 50 microseconds even for equal shapes, as long as attention in one step of
    decoding.
    """
    for other in others:
        if other != shape:
            return torch.broadcast_shapes(shape, *others)
    return shape


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


def positions_in(span: range, device: torch.device) -> Tensor:
    """The positions of a span as a tensor."""
    return torch.arange(span.start, span.stop, device=device)
