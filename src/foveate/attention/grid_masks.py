"""A mask for the places of a grid, such as the patches of a picture, row by row."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from foveate.attention.masks import Mask
from foveate.attention.shapes import positions_in


def grid_window(radius: int, columns: int, first: int = 0) -> Mask:
    """A place of a grid may look at places at most `radius` rows and columns away: local attention in two dimensions.

    Queries and keys are `first` tokens of no place, then the places of a grid with `columns` columns, row by row. The
    tokens look everywhere, and every place may look at them.
    """
    return _GridWindow(radius, columns, first)


@dataclass(frozen=True)
class _GridWindow(Mask):
    radius: int
    columns: int
    first: int

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        queries, keys = (positions_in(span, device) - self.first for span in (rows, columns))
        above = keys // self.columns - (queries // self.columns)[:, None]
        beside = keys % self.columns - (queries % self.columns)[:, None]
        near = (above.abs() <= self.radius) & (beside.abs() <= self.radius)
        return near | (keys < 0) | (queries < 0)[:, None]

    def reach(self, rows: range, keys: int) -> range:
        if rows.start < self.first:
            return range(keys)
        top, bottom = ((row - self.first) // self.columns for row in (rows.start, rows.stop - 1))
        first = 0 if self.first else max(0, (top - self.radius) * self.columns)
        last = self.first + (bottom + self.radius + 1) * self.columns
        return range(min(keys, first), min(keys, last))
