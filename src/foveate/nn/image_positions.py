"""Positions in an image as sine and cosine waves (Carion et al. 2020, section A.4), and which of them are padding."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def coordinate_waves(values: Float[Tensor, "..."], width: int) -> Float[Tensor, "... width"]:
    """`width` waves, an even number, of coordinates from 0 to 1: sines and cosines interleaved.

    The longest wave has 10,000 times the length of the shortest, one of whose periods is the image.
    """
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=values.device) / width)
    angles = 2 * math.pi * values[..., None] * frequencies.to(values.dtype)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


def grid_positions(
    inside: Bool[Tensor, "B h w"], width: int, dtype: torch.dtype, centred: bool = False
) -> Float[Tensor, "B T C"]:
    """Waves of the row and then of the column of each place of a feature map, row by row; `width` in all.

    `inside` is False for padding at the right and the bottom: rows and columns are counted as shares of what is inside,
    to the end of a place or, if `centred`, to its middle.
    """
    counts, half = inside.to(dtype), 0.5 if centred else 0.0
    rows, columns = counts.cumsum(1), counts.cumsum(2)
    rows, columns = (rows - half) / (rows[:, -1:] + 1e-6), (columns - half) / (columns[:, :, -1:] + 1e-6)
    return torch.cat([coordinate_waves(each, width // 2) for each in (rows, columns)], -1).flatten(1, 2)


def inside_images(
    pixels: Float[Tensor, "B c h w"], grid: Float[Tensor, "B C i j"], sizes: Int[Tensor, "B 2"] | None
) -> Bool[Tensor, "B i j"]:
    """Marks the places of a feature map that are not padding: those whose first pixel is inside the image."""
    (height, width), (rows, columns) = pixels.shape[2:], grid.shape[2:]
    if sizes is None:
        return torch.ones(len(grid), rows, columns, dtype=torch.bool, device=grid.device)
    tops = torch.arange(rows, device=grid.device) * height // rows
    lefts = torch.arange(columns, device=grid.device) * width // columns
    return (tops < sizes[:, :1])[:, :, None] & (lefts < sizes[:, 1:])[:, None]
