"""What waits for what and how far signals travel: by hand, and against the gradients of real layers."""

import pytest
import torch
from torch import nn

from foveate.attention import attend, window
from foveate.experiments import structure
from foveate.experiments.structure import Structure, first_steps, longest_path, sequential_steps


def test_steps_of_a_recurrent_layer_run_along_the_diagonals() -> None:
    assert first_steps(structure.recurrent(), 5, layers=3) == [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [3, 4, 5, 6, 7]]


@pytest.mark.parametrize(
    "each",
    [structure.convolution(3), structure.dilated_convolutions(2), structure.attention(), structure.attention(2)],
)
def test_all_cells_of_other_layers_are_ready_together(each: Structure) -> None:
    assert first_steps(each, 7, layers=2) == [[1] * 7, [2] * 7]
    assert sequential_steps(each, 7) == 1


@pytest.mark.parametrize(
    ("each", "length", "path"),
    [
        (structure.recurrent(), 13, 13),
        (structure.attention(), 13, 1),
        (structure.convolution(3), 13, 12),
        (structure.convolution(5), 13, 6),
        (structure.convolution(7), 13, 4),
        (structure.attention(4), 13, 3),
        (structure.attention(5), 13, 3),
        (structure.attention(6), 13, 2),
        (structure.attention(10**15), 13, 1),
        # 3 layers of kernel 2 see 8 positions, 3 of kernel 3 see 27
        (structure.dilated_convolutions(2), 8, 3),
        (structure.dilated_convolutions(2), 9, 4),
        (structure.dilated_convolutions(3), 27, 3),
        (structure.dilated_convolutions(3), 28, 4),
        (structure.attention(), 1, 1),
    ],
)
def test_longest_path(each: Structure, length: int, path: int) -> None:
    assert longest_path(each, length) == path


@pytest.mark.parametrize("name", ["convolution", "restricted self-attention"])
def test_gradients_travel_as_the_structure_says(name: str) -> None:
    """This many layers connect the ends of a sequence, and one layer fewer does not."""
    length = 11
    if name == "convolution":
        each, convolve = structure.convolution(5), nn.Conv1d(1, 1, 5, padding=2)
        nn.init.ones_(convolve.weight)

        def layer(x: torch.Tensor) -> torch.Tensor:
            return convolve(x.mT).mT
    else:
        each = structure.attention(3)

        def layer(x: torch.Tensor) -> torch.Tensor:
            return attend(x, x, x, mask=window(3))

    for layers, connected in ((longest_path(each, length) - 1, False), (longest_path(each, length), True)):
        start = torch.ones(1, length, 1, requires_grad=True)
        x = start
        for _ in range(layers):
            x = layer(x)
        (gradient,) = torch.autograd.grad(x[0, -1, 0], start)
        assert bool(gradient[0, 0, 0]) == connected
