"""Image places put back: where in the picture the queries and keys of an image model stand."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Int, Shaped
from torch import Tensor

from foveate.errors import UserError


@dataclass(frozen=True)
class Grid:
    """Patches of a picture row by row, behind tokens that stand for none of them."""

    height: int
    """In patches."""
    width: int
    before: int = 1
    """How many tokens come first: a class token, registers."""

    def place(self, row: int, column: int) -> int:
        """The number of a patch among the queries or keys."""
        if not (0 <= row < self.height and 0 <= column < self.width):
            raise UserError(f"there is no patch ({row}, {column}) in a picture of {self.height} x {self.width} patches")
        return self.before + row * self.width + column

    def map(self, numbers: Shaped[Tensor, "*leading S"]) -> Shaped[Tensor, "*leading height width"]:
        """Numbers of keys (weights, what they received) or of queries (entropies) as a picture of so many patches.

        Raises UserError if there are not as many numbers as patches and tokens before.
        """
        expected = self.before + self.height * self.width
        if numbers.shape[-1] != expected:
            raise UserError(
                f"{self.height} x {self.width} patches with {self.before} tokens before them are {expected} places, "
                f"but there are {numbers.shape[-1]}; is there a class token (before=1) or none (before=0)?"
            )
        return numbers[..., self.before :].unflatten(-1, (self.height, self.width))


@dataclass(frozen=True)
class Windows:
    """Windows of a picture that attend each by itself, as in Swin (Liu et al. 2021), numbered row by row.

    The picture is padded at its right and bottom to whole windows, then rolled by `shift` to the left and up. What is
    known of the windows' places has the examples and their windows together as its first dimension, B*N. Models that
    roll hide from one another what that brings together from opposite edges; pages take this for granted.
    Raises UserError for sizes below 1, and shifts below 0 or as large as a window.
    """

    height: int
    """In patches, without padding."""
    width: int
    window: tuple[int, int]
    """Height and width of a window."""
    shift: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        if min(self.height, self.width, *self.window) < 1:
            raise UserError(f"windows of {self.window} in {self.height} x {self.width} patches: all must be 1 or more")
        if not all(0 <= shift < length for shift, length in zip(self.shift, self.window, strict=True)):
            raise UserError(f"windows of {self.window} are rolled by less than their size, not by {self.shift}")

    @property
    def grid(self) -> tuple[int, int]:
        """How many windows there are, down and across."""
        return -(-self.height // self.window[0]), -(-self.width // self.window[1])

    @property
    def size(self) -> int:
        """How many places a window has."""
        return math.prod(self.window)

    @cached_property
    def patches(self) -> Int[Tensor, "N W"]:
        """The patch, counted row by row, at each place of each window; -1 for padding."""
        over, along = self.window
        numbers = torch.arange(self.height * self.width).view(self.height, self.width)
        padded = F.pad(numbers, (0, -self.width % along, 0, -self.height % over), value=-1)
        rolled = padded.roll((-self.shift[0], -self.shift[1]), (0, 1))
        windows = rolled.unflatten(1, (-1, along)).unflatten(0, (-1, over)).transpose(1, 2)
        return windows.flatten(2).flatten(0, 1)

    @cached_property
    def places(self) -> Int[Tensor, "P"]:
        """The place of each patch among those of all windows, window by window."""
        patches = self.patches.flatten()
        return patches.argsort()[(patches < 0).sum() :]

    @property
    def padding(self) -> int:
        """How many places of a window are padding, of that which has most."""
        return int((self.patches < 0).sum(1).max())

    def check(self, examples: int, places: int) -> None:
        """Raises UserError unless so many examples, of so many places each, are the windows of whole pictures."""
        count, size = self.patches.shape
        if examples % count or places != size:
            raise UserError(
                f"a picture of {self.height} x {self.width} patches has {count} windows of {size} places, but the "
                f"numbers are for {examples} windows of {places}; is it the size of this layer's picture?"
            )

    def map(self, numbers: Shaped[Tensor, "BN *others W"]) -> Shaped[Tensor, "B *others height width"]:
        """Numbers of each place of each window (what a key received, the entropy of a query) as pictures.

        Raises UserError if the numbers are not those of whole pictures.
        """
        self.check(numbers.shape[0], numbers.shape[-1])
        by_place = numbers.unflatten(0, (-1, len(self.patches))).movedim(1, -2).flatten(-2)
        return by_place[..., self.places.to(numbers.device)].unflatten(-1, (self.height, self.width))
