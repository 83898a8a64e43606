"""Attention to points of feature maps: the kernel that interpolates has the output of the whole map of weights."""

import pytest
import torch
from torch.autograd import gradcheck

from foveate.attention import PointScore, Soft, attend, grid_places, on_finest_grid, point_queries
from foveate.attention.hooks import intercept

GRIDS = ((5, 7), (3, 4))
PLACES = 5 * 7 + 3 * 4


def attended(points: torch.Tensor, logits: torch.Tensor, values: torch.Tensor, kernel: str = "auto") -> torch.Tensor:
    places = grid_places(GRIDS, values.device)[None, None]
    queries, sink = point_queries(points, logits, GRIDS), Soft(values.new_zeros(()))
    return attend(queries, places, values, score=PointScore(GRIDS), select=sink, kernel=kernel)


def problem(least: float = -0.3, most: float = 1.3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two examples, three heads and eleven queries with three points of each map, some of them outside."""
    points = torch.empty(2, 3, 11, 6, 2, dtype=torch.float64).uniform_(least, most)
    return points, torch.randn(2, 3, 11, 6, dtype=torch.float64), torch.randn(2, 3, PLACES, 5, dtype=torch.float64)


@pytest.mark.parametrize("span", [(-0.3, 1.3), (0.2, 0.8), (1.5, 2.0)], ids=["edges", "inside", "outside"])
def test_the_kernel_gives_what_the_whole_map_gives(span: tuple[float, float]) -> None:
    given = problem(*span)
    torch.testing.assert_close(attended(*given), attended(*given, kernel="eager"), atol=1e-9, rtol=0)


def test_only_points_are_for_the_kernel() -> None:
    points, logits, values = problem()
    names = []
    with intercept(lambda call, kernel: (names.append(kernel.name), kernel.attend(call))[1]):
        attended(points, logits, values)
        attend(values, values, values)
    assert names[0] == "points"
    assert names[1] != "points"
    with pytest.raises(ValueError, match="the points kernel serves points of feature maps only"):
        attend(values, values, values, kernel="points")


def test_gradients() -> None:
    points, logits, values = problem()
    given = points[:1, :, :2].clone().requires_grad_(), logits[:1, :, :2].clone().requires_grad_()
    assert gradcheck(lambda *parts: attended(*parts), (*given, values[:1].clone().requires_grad_()))


def test_one_point_reads_the_four_places_around_it() -> None:
    """In the middle of the first four places, with all weight on the first of six points."""
    points = torch.full((1, 1, 1, 6, 2), 0.5)
    points[..., 0, :] = torch.tensor([1 / 7, 1 / 5])
    logits = torch.tensor([0.0, -50, -50, -50, -50, -50]).view(1, 1, 1, 6)
    values = torch.eye(PLACES)[None, None]
    weights = attended(points, logits, values).flatten()
    expected = torch.zeros(PLACES)
    expected[[0, 1, 7, 8]] = 0.25
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


def test_maps_of_all_sizes_as_one() -> None:
    weights = torch.rand(4, PLACES)
    whole = on_finest_grid(weights, GRIDS)
    assert whole.shape == (4, 35)
    torch.testing.assert_close(whole.sum(-1), weights.sum(-1))
    only = torch.zeros(PLACES)
    only[35] = 1  # the top left place of the coarser map, which covers two rows and two columns
    assert on_finest_grid(only, GRIDS).nonzero().flatten().tolist() == [0, 1, 7, 8]
