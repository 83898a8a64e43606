"""Numbers of image models back in their places, against pictures that are padded, rolled and cut into windows."""

import re

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.errors import UserError
from foveate.sight.layouts import Grid, Windows


def test_grid() -> None:
    grid = Grid(3, 5, before=2)
    numbers = torch.arange(2 * 17).view(2, 17)
    assert grid.map(numbers)[1].tolist() == [[19, 20, 21, 22, 23], [24, 25, 26, 27, 28], [29, 30, 31, 32, 33]]
    assert numbers[1, grid.position(2, 1)] == grid.map(numbers)[1, 2, 1] == 30
    assert Grid(3, 5, before=0).position(0, 0) == 0


def test_grid_of_another_size() -> None:
    message = (
        "3 x 5 patches with 1 tokens before them are 16 positions, but there are 15 values; "
        "is there a class token (before=1) or none (before=0)?"
    )
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        Grid(3, 5).map(torch.zeros(2, 15))


LAYOUTS = [
    Windows(6, 15, (2, 5)),
    Windows(6, 15, (2, 5), (1, 2)),
    Windows(7, 11, (3, 5), (1, 2)),
    Windows(7, 11, (3, 5), (2, 4)),
    Windows(2, 3, (5, 7)),
    Windows(5, 13, (5, 13), (0, 6)),
]


def cut(picture: Tensor, layout: Windows) -> Tensor:
    """(B, C, height, width) in windows, (B*N, C, W): as an image model does it, window by window."""
    over, along = layout.window
    picture = F.pad(picture, (0, -layout.width % along, 0, -layout.height % over))
    picture = torch.roll(picture, (-layout.shift[0], -layout.shift[1]), (2, 3))
    windows = [
        example[:, top : top + over, left : left + along].flatten(1)
        for example in picture
        for top in range(0, picture.shape[2], over)
        for left in range(0, picture.shape[3], along)
    ]
    return torch.stack(windows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_windows_are_put_back(layout: Windows) -> None:
    picture = torch.randn(2, 3, layout.height, layout.width)
    assert torch.equal(layout.map(cut(picture, layout)), picture)


def test_windows_of_another_picture() -> None:
    message = (
        "a picture of 7 x 11 patches has 9 windows of 15 positions, but the values are for 12 windows of 15; "
        "is it the size of this layer's picture?"
    )
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        Windows(7, 11, (3, 5)).map(torch.zeros(12, 3, 15))


def test_a_patch_outside_of_the_picture() -> None:
    with pytest.raises(UserError, match=r"^there is no patch \(3, 0\) in a picture of 3 x 5 patches$"):
        Grid(3, 5).position(3, 0)
