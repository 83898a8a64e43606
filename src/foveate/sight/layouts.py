"""Where in the picture the queries and keys of an image model are."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Int, Shaped
from torch import Tensor

from foveate.errors import MOST, UserError, of_kind, two_whole_numbers, whole_number


@dataclass(frozen=True)
class Grid:
    """Patches of a picture, row by row, after tokens that are not patches."""

    height: int
    """In patches."""
    width: int
    before: int = 1
    """Number of tokens before the first patch: a class token, registers."""

    def __post_init__(self) -> None:
        for name, least in (("height", 1), ("width", 1), ("before", 0)):
            whole_number(name, getattr(self, name), least)

    def position(self, row: int, column: int) -> int:
        """The position of a patch among the queries or keys."""
        if not (0 <= row < self.height and 0 <= column < self.width):
            raise UserError(f"there is no patch ({row}, {column}) in a picture of {self.height} x {self.width} patches")
        return self.before + row * self.width + column

    def map(self, values: Shaped[Tensor, "*leading S"]) -> Shaped[Tensor, "*leading height width"]:
        """Values of keys (weights, attention received) or of queries (entropies), arranged like the patches.

        Raises UserError unless there is one value for each patch and each token before them.
        """
        of_kind(Tensor, "values", values, "a tensor")
        expected = self.before + self.height * self.width
        if values.shape[-1] != expected:
            raise UserError(
                f"{self.height} x {self.width} patches with {self.before} tokens before them are {expected} positions, "
                f"but there are {values.shape[-1]} values; is there a class token (before=1) or none (before=0)?"
            )
        return values[..., self.before :].unflatten(-1, (self.height, self.width))


@dataclass(frozen=True)
class Windows:
    """Windows of a picture, each of which attends within itself, as in Swin (Liu et al. 2021), numbered row by row.

    The picture is padded on the right and at the bottom to whole windows, then rolled by `shift` to the left and up.
    The examples and their windows are one dimension, B*N. A model that rolls also masks patches from opposite edges
    from each other; pages assume this. Raises UserError for sizes below 1 and for shifts that are negative or as large
    as a window.
    """

    height: int
    """In patches, without padding."""
    width: int
    window: tuple[int, int]
    """Height and width of a window."""
    shift: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            whole_number(name, getattr(self, name), least=1)
        two_whole_numbers("window", self.window, least=1)
        two_whole_numbers("shift", self.shift, least=-MOST)
        if not all(0 <= shift < length for shift, length in zip(self.shift, self.window, strict=True)):
            raise UserError(
                f"windows of {self.window} cannot be shifted by {self.shift}: it must be less than the window"
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Number of windows, down and across."""
        return -(-self.height // self.window[0]), -(-self.width // self.window[1])

    @property
    def size(self) -> int:
        """Number of positions in a window."""
        return math.prod(self.window)

    @cached_property
    def patches(self) -> Int[Tensor, "N W"]:
        """The patch, counted row by row, at each position of each window; -1 for padding."""
        over, along = self.window
        numbers = torch.arange(self.height * self.width).view(self.height, self.width)
        padded = F.pad(numbers, (0, -self.width % along, 0, -self.height % over), value=-1)
        rolled = padded.roll((-self.shift[0], -self.shift[1]), (0, 1))
        windows = rolled.unflatten(1, (-1, along)).unflatten(0, (-1, over)).transpose(1, 2)
        return windows.flatten(2).flatten(0, 1)

    @cached_property
    def positions(self) -> Int[Tensor, "P"]:
        """The position of each patch among those of all windows, window by window."""
        patches = self.patches.flatten()
        return patches.argsort()[(patches < 0).sum() :]

    @property
    def padding(self) -> int:
        """The largest number of padded positions in a window."""
        return int((self.patches < 0).sum(1).max())

    def check(self, examples: int, positions: int) -> None:
        """Raise UserError unless `examples`, of `positions` each, are the windows of whole pictures."""
        count, size = self.patches.shape
        if examples % count or positions != size:
            raise UserError(
                f"a picture of {self.height} x {self.width} patches has {count} windows of {size} positions, but the "
                f"values are for {examples} windows of {positions}; is it the size of this layer's picture?"
            )

    def map(self, values: Shaped[Tensor, "BN *others W"]) -> Shaped[Tensor, "B *others height width"]:
        """Values of each position of each window (attention received, entropies), arranged like the pictures.

        Raises UserError if they are not the values of whole pictures.
        """
        self.check(values.shape[0], values.shape[-1])
        by_position = values.unflatten(0, (-1, len(self.patches))).movedim(1, -2).flatten(-2)
        return by_position[..., self.positions.to(values.device)].unflatten(-1, (self.height, self.width))
