"""Windows put back in place: one map of the whole picture, beside that map written out pair by pair."""

import re
from typing import Any

import pytest
import torch
from test_layouts import LAYOUTS
from torch import Tensor, nn

import foveate
from foveate.attention import attend
from foveate.errors import UserError
from foveate.sight import Sight, Windows

HEADS, EXAMPLES = 3, 2


class OfWindows(nn.Module):
    """Attends within whatever it is given as examples, to values of the keys' own."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return attend(queries, keys, keys)


def looked(over: Windows, along: Windows, **options: Any) -> Sight:
    """A sight of pictures in windows, of queries and of keys."""
    generator = torch.Generator().manual_seed(3)
    queries, keys = (
        torch.randn(EXAMPLES * side.patches.shape[0], HEADS, side.size, 5, generator=generator)
        for side in (over, along)
    )
    model = OfWindows()
    with foveate.look(model, **options) as sight:
        model(queries, keys)
    return sight


def written_out(weights: Tensor, over: Windows, along: Windows) -> Tensor:
    """The map of the whole picture, (B, H, T, S), pair by pair."""
    count = len(over.patches)
    found = weights.new_zeros(EXAMPLES, HEADS, over.height * over.width, along.height * along.width)
    for window in range(count):
        for row, query in enumerate(over.patches[window].tolist()):
            for column, key in enumerate(along.patches[window].tolist()):
                if query >= 0 and key >= 0:
                    found[:, :, query, key] = weights[window::count, :, row, column]
    return found


POOLED = (Windows(3, 4, (1, 2)), Windows(6, 8, (2, 4)))
"""Queries of which four patches become one, as where a layer halves them."""

PAIRS = [(layout, layout) for layout in LAYOUTS] + [POOLED]


@pytest.mark.parametrize(("over", "along"), PAIRS)
def test_every_measure_is_that_of_the_whole_picture(over: Windows, along: Windows) -> None:
    sight = looked(over, along)
    (name,) = sight.sites
    windows = sight[name]
    expected = written_out(windows.weights(), over, along)
    site = sight.merge_windows({name: (over, along)})[name]
    assert site.shape == expected.shape
    assert torch.equal(site.weights(), expected)
    assert torch.equal(site.weights([2, 0], slice(1, 4), [0, 3, 0]), expected[:, [2, 0], 1:4][..., [0, 3, 0]])
    assert torch.allclose(site.received(), expected.sum(-2), atol=1e-6)
    some = torch.arange(expected.shape[2]).expand(len(expected), -1) % 3 == 0
    assert torch.allclose(site.received(some), expected[:, :, ::3].sum(-2), atol=1e-6)
    assert torch.equal(site.max(), expected.amax(-1))
    places = torch.arange(expected.shape[3])
    far = (expected * (places - torch.arange(expected.shape[2])[:, None]).abs()).sum(-1) / expected.sum(-1)
    assert over is not along or torch.allclose(site.distance(), far, atol=1e-5)
    assert site.weights([], [], []).shape == (EXAMPLES, 0, 0, 0)
    assert site.weights(queries=slice(1, 1), keys=[2]).shape == (EXAMPLES, HEADS, 0, 1)
    shares = torch.rand(EXAMPLES, 4, expected.shape[2])
    assert torch.allclose(site.propagate(shares), shares @ expected.mean(1), atol=1e-6)
    for prepared in (False, True):
        if prepared:
            site.measure("top", "entropy", "pooled", top=4)
        top = site.top(4)
        best = expected.topk(4, -1)
        assert torch.equal(top.weights, best.values)
        assert torch.equal(top.keys, best.indices.masked_fill(best.values == 0, -1))
    own = windows.entropy()
    for window, patches in enumerate(over.patches):
        inside = patches >= 0
        assert torch.equal(site.entropy()[..., patches[inside]], own[window :: len(over.patches)][..., inside])


@pytest.mark.parametrize(("over", "along"), PAIRS)
@pytest.mark.parametrize("size", [(1, 1), (4, 3), (1000, 1000)])
def test_pooled(over: Windows, along: Windows, size: tuple[int, int]) -> None:
    sight = looked(over, along)
    (name,) = sight.sites
    expected = written_out(sight[name].weights(), over, along)
    rows, columns = (min(each, count) for each, count in zip(size, expected.shape[2:], strict=True))
    bounds = [
        torch.arange(parts + 1) * count // parts
        for parts, count in zip((rows, columns), expected.shape[2:], strict=True)
    ]
    found = sight.merge_windows({"*": (over, along)})[name].pooled(*size)
    assert found.shape == (EXAMPLES, HEADS, rows, columns)
    for row in range(rows):
        for column in range(columns):
            cell = expected[..., bounds[0][row] : bounds[0][row + 1], bounds[1][column] : bounds[1][column + 1]]
            assert torch.allclose(found[..., row, column], cell.sum(-1).mean(-1), atol=1e-6)


def test_a_rollout_goes_through_layers_of_windows() -> None:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([OfWindows(), OfWindows()])

        def forward(self) -> None:
            for layer in self.layers:
                layer(torch.randn(4, HEADS, 6, 5), torch.randn(4, HEADS, 6, 5))

    with foveate.look(model := Stack()) as sight:
        model()
    plain, shifted = Windows(4, 6, (2, 3)), Windows(4, 6, (2, 3), (1, 1))
    whole = sight.merge_windows({"layers.0": plain, "*": shifted})
    first, second = ((whole[name].weights().mean(1) + torch.eye(24)) / 2 for name in whole.sites)
    assert torch.allclose(whole.rollout(), second @ first, atol=1e-6)
    assert sight["layers.0"].shape == (4, HEADS, 6, 6)


def test_what_does_not_fit() -> None:
    layout = Windows(4, 6, (2, 3))
    sight = looked(layout, layout)
    with pytest.raises(UserError, match=r"^a picture of 8 x 6 patches has 8 windows of 6 positions, but the values "):
        looked(Windows(2, 3, (2, 3)), Windows(2, 3, (2, 3))).merge_windows({"*": Windows(8, 6, (2, 3))})
    with pytest.raises(UserError, match=r"^windows are given for 'layer\*', which matches none of the sites: "):
        sight.merge_windows({"layer*": layout})
    with pytest.raises(UserError, match=r"queries have \(2, 2\) windows, down and across, but the keys have \(1, 4\)$"):
        sight.merge_windows({"*": (layout, Windows(2, 12, (2, 3)))})


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((4, 6, (2, 0)), "window is 0, but must be at least 1"),
        ((4, 6, (2, 3), (0, 3)), "windows of (2, 3) cannot be shifted by (0, 3): it must be less than the window"),
        ((4, 6, (2, 3), (-1, 0)), "windows of (2, 3) cannot be shifted by (-1, 0): it must be less than the window"),
    ],
)
def test_windows_that_are_none(sizes: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        Windows(*sizes)


def test_no_distance_between_patches_of_two_sizes() -> None:
    site = looked(*POOLED).merge_windows({"*": POOLED})[""]
    with pytest.raises(UserError, match=r"queries and keys are patches of different sizes, so there is no distance$"):
        site.distance()


@pytest.mark.parametrize("layout", [Windows(7, 11, (3, 5), (1, 2)), Windows(6, 10, (3, 5), (1, 2))])
def test_a_look_that_kept_measures_alone(layout: Windows) -> None:
    """What each window told of itself is put back; where padding has a part in it, queries and keys are needed."""
    names = ["top", "entropy", "received", "max"]
    whole, kept = (
        looked(layout, layout, **options).merge_windows({"*": layout})[""] for options in ({}, {"keep": names})
    )
    assert torch.equal(kept.entropy(), whole.entropy())
    if not layout.padding:
        assert torch.equal(kept.top(8).keys, whole.top(8).keys)
        assert torch.equal(kept.max(), whole.max())
        assert torch.allclose(kept.received(), whole.received())
    else:
        for measure in (kept.top, kept.max, kept.received):
            with pytest.raises(UserError, match=r": (top|received) of merged windows needs queries and keys, but"):
                measure()
    with pytest.raises(UserError, match="pooled of merged windows needs queries and keys"):
        kept.pooled()
