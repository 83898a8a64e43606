"""Swin: its windows, and where they lie in the picture."""

import pytest
import torch

import foveate
from foveate.errors import UserError
from foveate.nn import WindowAttention
from foveate.nn.window_attention import from_windows, into_windows
from foveate.sight import Windows

SMALL = {"classes": 5, "channels": 1, "width": 12, "head_width": 4, "window": 3}


def test_where_it_attends() -> None:
    """Within windows, each with its own heads: 14 x 14 patches are 5 x 5 windows, then 7 x 7 are 3 x 3."""
    model = foveate.create("swin-nano", **SMALL).eval()
    with foveate.look(model) as sight:
        model(torch.randn(2, 1, 28, 27))
    assert sight.sites == [
        *(f"stages.0.{block}.self.attention" for block in range(2)),
        *(f"stages.1.{block}.self.attention" for block in range(4)),
    ]
    assert sight["stages.0.1.self.attention"].weights().shape == (2 * 25, 3, 9, 9)
    weights = sight["stages.1.3.self.attention"].weights()
    assert weights.shape == (2 * 9, 6, 9, 9)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2 * 9, 6, 9))


def test_windows_are_those_that_sight_knows() -> None:
    """Each place of a map, by its number, is in the window and at the position where the layout of pages has it."""
    layer = WindowAttention(4, 2, window=3, shift=1)
    window, shift = layer.layout(7, 11)
    layout = Windows(7, 11, window, shift)
    numbers = torch.full((9, 12), -1)
    numbers[:7, :11] = torch.arange(77).view(7, 11)
    found = into_windows(numbers.roll((-1, -1), (0, 1))[None, ..., None], window)
    assert torch.equal(found[..., 0], layout.patches)
    assert torch.equal(from_windows(found, window, (9, 12))[0, ..., 0], numbers.roll((-1, -1), (0, 1)))


@pytest.mark.parametrize("shift", [0, 1])
def test_a_place_changes_what_its_window_gives_and_nothing_else(shift: int) -> None:
    """A rolled map has places from opposite edges side by side: they do not see each other."""
    layer = WindowAttention(4, 2, window=3, shift=shift).eval()
    x = torch.randn(1, 6, 9, 4)
    changed = x.clone()
    changed[0, 5, 4] += 1
    differs = (layer(x) != layer(changed)).any(-1)[0]
    expected = torch.zeros(6, 9, dtype=torch.bool)
    expected[(slice(4, 6), slice(4, 7)) if shift else (slice(3, 6), slice(3, 6))] = True
    assert torch.equal(differs, expected)


def test_a_map_smaller_than_a_window_is_one_window() -> None:
    """The same as alone in the corner of a map of a window's size, if the rest of it could not be seen."""
    layer = WindowAttention(4, 2, window=5, shift=2).eval()
    assert layer.layout(5, 3) == ((5, 3), (0, 0))
    assert layer.layout(3, 11) == ((3, 5), (0, 2))
    x = torch.randn(2, 2, 3, 4)
    rows, columns = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 1, 2, 0, 1, 2])
    offsets = 9 * (rows[:, None] - rows + 4) + columns[:, None] - columns + 4
    bias = layer.position.table[offsets].movedim(-1, 0)
    expected = layer.attention(x.flatten(1, 2), bias=bias.detach())
    torch.testing.assert_close(layer(x).flatten(1, 2), expected)


def test_heads_that_do_not_divide_the_width() -> None:
    with pytest.raises(UserError, match="width"):
        foveate.create("swin-tiny", classes=5, head_width=31)
