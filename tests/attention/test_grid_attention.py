"""Attention over an image grid, flattened: what its order changes, and what it does not."""

import pytest
import torch

from foveate.attention import Additive, Biaffine, Dot, ScaledDot, Score, attend

ROWS, COLUMNS, WIDTH = 3, 5, 7


def scores() -> list[Score]:
    torch.manual_seed(3)
    return [ScaledDot(), Dot(), Additive(WIDTH, WIDTH, 11), Biaffine(WIDTH, WIDTH)]


@pytest.mark.parametrize("score", scores(), ids=lambda score: type(score).__name__)
def test_the_order_of_places_does_not_matter(score: Score) -> None:
    """Flattened by rows, by columns, or in any order; outputs follow the order of the queries."""
    grid, queries = torch.randn(2, ROWS, COLUMNS, WIDTH), torch.randn(2, 4, WIDTH)
    by_rows, by_columns = grid.flatten(1, 2), grid.transpose(1, 2).flatten(1, 2)
    found = attend(queries, by_rows, by_rows, score=score)
    torch.testing.assert_close(attend(queries, by_columns, by_columns, score=score), found)
    order = torch.randperm(4)
    torch.testing.assert_close(attend(queries[:, order], by_rows, by_rows, score=score), found[:, order])


@pytest.mark.parametrize("score", scores(), ids=lambda score: type(score).__name__)
def test_self_attention_turns_with_the_grid(score: Score) -> None:
    """A grid that is turned by 90 degrees gives the same outputs, turned."""

    def over(grid: torch.Tensor) -> torch.Tensor:
        places = grid.flatten(1, 2)
        return attend(places, places, places, score=score).unflatten(1, grid.shape[1:3])

    grid = torch.randn(2, ROWS, COLUMNS, WIDTH)
    torch.testing.assert_close(over(grid.rot90(1, (1, 2))), over(grid).rot90(1, (1, 2)))


def test_the_weights_are_a_picture() -> None:
    """A query that equals one place only looks there: the map has its row and column."""
    grid = torch.eye(ROWS * COLUMNS).view(1, ROWS, COLUMNS, -1)
    places = grid.flatten(1, 2)
    weights = attend(50 * grid[:, 1, 3:4], places, torch.eye(ROWS * COLUMNS), score=Dot()).view(ROWS, COLUMNS)
    assert weights.argmax() == COLUMNS + 3
    assert float(weights[1, 3]) == pytest.approx(1)
