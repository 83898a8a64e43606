"""What a layer's structure decides: which cells wait for which, and how far a signal has to travel.

A layer is a row of cells, one for each position. A cell reads cells of the layer below, and in a recurrent layer the
cell before it. Both measures are found by walking these connections, so they hold for whatever is connected.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """How layers are connected."""

    name: str
    offsets: Callable[[int, int], range]
    """`offsets(level, length)`: which cells below a cell reads, as distances from its own position, if there are such.
    Levels of a stack count from 0."""
    recurrent: bool = False
    """Whether a cell also waits for the cell before it."""


def recurrent() -> Structure:
    return Structure("recurrent", lambda level, length: range(1), recurrent=True)


def convolution(kernel: int) -> Structure:
    """A cell reads `kernel` positions around its own."""
    first = -((kernel - 1) // 2)
    return Structure("convolution", lambda level, length: range(first, first + kernel))


def dilated_convolutions(kernel: int) -> Structure:
    """A cell reads its own position and `kernel - 1` before it: neighbours, then every k-th, then every k²-th."""

    def offsets(level: int, length: int) -> range:
        distance = kernel**level
        return range(-distance * (kernel - 1), 1, distance)

    return Structure("dilated convolutions", offsets)


def attention(radius: int | None = None) -> Structure:
    """Self-attention to all cells, or restricted to those within a radius."""

    def offsets(level: int, length: int) -> range:
        reach = length - 1 if radius is None else min(radius, length - 1)
        return range(-reach, reach + 1)

    return Structure("self-attention" if radius is None else "restricted self-attention", offsets)


def first_steps(structure: Structure, length: int, layers: int = 1) -> list[list[int]]:
    """For each layer and position, the step at which its cell can be computed at the earliest; the input is step 0.

    All cells of one step can be computed in parallel.
    """
    found, below = [], [0] * length
    for level in range(layers):
        offsets, steps = structure.offsets(level, length), [0] * length
        for place in range(length):
            waits = below[_first(place, offsets) : place + offsets.stop : offsets.step]
            before = steps[place - 1] if structure.recurrent and place else 0
            steps[place] = 1 + max(before, *waits)
        found.append(steps)
        below = steps
    return found


def _first(place: int, offsets: range) -> int:
    """The first of the positions that a cell reads: not before the beginning."""
    start = place + offsets.start
    return start if start >= 0 else start % offsets.step


def sequential_steps(structure: Structure, length: int) -> int:
    """How many steps one layer takes, whatever the number of processors."""
    return max(first_steps(structure, length)[0])


def longest_path(structure: Structure, length: int) -> int:
    """How many cells a signal passes between the two positions that are farthest from each other, at the fewest.

    A recurrent layer hands it from cell to cell; of other layers so many are stacked that the last position depends
    on the first.
    """
    if structure.recurrent:
        return sequential_steps(structure, length)
    # A bit for each position: 1 where a cell depends on the first position of the input.
    everywhere, last = (1 << length) - 1, 1 << (length - 1)
    reached, layers = 1, 0
    while layers == 0 or not reached & last:
        before, reached = reached, 0
        for offset in structure.offsets(layers, length):
            reached |= before >> offset if offset > 0 else before << -offset
        reached &= everywhere
        layers += 1
    return layers
