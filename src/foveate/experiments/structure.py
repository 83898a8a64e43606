"""Sequential steps and path lengths of a layer, from its connections.

A layer is a row of cells, one for each position. A cell depends on cells of the layer below, and in a recurrent layer
on the cell before it. Both measures are computed by following these connections."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """The connections of a layer."""

    name: str
    offsets: Callable[[int, int], range]
    """`offsets(level, length)`: the cells below on which a cell depends, as distances from its position. Levels count
    from 0."""
    recurrent: bool = False
    """Whether a cell also depends on the cell before it."""


def recurrent() -> Structure:
    return Structure("recurrent", lambda level, length: range(1), recurrent=True)


def convolution(kernel: int) -> Structure:
    """A cell depends on `kernel` positions around its own."""
    first = -((kernel - 1) // 2)
    return Structure("convolution", lambda level, length: range(first, first + kernel))


def dilated_convolutions(kernel: int) -> Structure:
    """A cell depends on its position and `kernel - 1` before it: neighbours, then every k-th, then every k²-th."""

    def offsets(level: int, length: int) -> range:
        distance = kernel**level
        return range(-distance * (kernel - 1), 1, distance)

    return Structure("dilated convolutions", offsets)


def attention(radius: int | None = None) -> Structure:
    """Self-attention to all cells, or to those within a radius."""

    def offsets(level: int, length: int) -> range:
        reach = length - 1 if radius is None else min(radius, length - 1)
        return range(-reach, reach + 1)

    return Structure("self-attention" if radius is None else "restricted self-attention", offsets)


def first_steps(structure: Structure, length: int, layers: int = 1) -> list[list[int]]:
    """For each layer and position, the earliest step at which its cell can be computed; the input is step 0.

    All cells of one step can be computed in parallel.
    """
    steps_of_layers, below = [], [0] * length
    for level in range(layers):
        offsets, steps = structure.offsets(level, length), [0] * length
        for position in range(length):
            waits = below[_first(position, offsets) : position + offsets.stop : offsets.step]
            before = steps[position - 1] if structure.recurrent and position else 0
            steps[position] = 1 + max(before, *waits)
        steps_of_layers.append(steps)
        below = steps
    return steps_of_layers


def _first(position: int, offsets: range) -> int:
    """The first position on which a cell depends, at least 0."""
    start = position + offsets.start
    return start if start >= 0 else start % offsets.step


def sequential_steps(structure: Structure, length: int) -> int:
    """The number of sequential steps of a layer, for any number of processors."""
    return max(first_steps(structure, length)[0])


def longest_path(structure: Structure, length: int) -> int:
    """The smallest number of cells between the first and the last position.

    In a recurrent layer, a signal passes from cell to cell. For other layers, this is the number of stacked layers
    after which the last position depends on the first."""
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
