"""Positions joined to vectors."""

import pytest
import torch

from foveate.attention import sinusoidal
from foveate.errors import UserError
from foveate.nn import LearnedPositions, Positioned, SinusoidalPositions

B, T, C = 2, 5, 6


def test_added() -> None:
    x = torch.randn(B, T, C)
    torch.testing.assert_close(Positioned(SinusoidalPositions(C))(x), x + sinusoidal(T, C))


def test_concatenated_before_the_vectors() -> None:
    x = torch.randn(B, T, C)
    joined = Positioned(SinusoidalPositions(3), "concatenate")(x)
    assert joined.shape == (B, T, 3 + C)
    for row, vectors in zip(joined, x, strict=True):
        torch.testing.assert_close(row, torch.cat([sinusoidal(T, 3), vectors], -1))


def test_added_widths_must_agree() -> None:
    with pytest.raises(ValueError, match="positions of width 3 cannot be added to vectors of width 6; make them equal"):
        Positioned(SinusoidalPositions(3))(torch.randn(B, T, C))


@pytest.mark.parametrize("positions", [SinusoidalPositions(C), LearnedPositions(11, C)])
def test_a_later_start_goes_on_where_the_first_part_ended(positions: SinusoidalPositions | LearnedPositions) -> None:
    layer, x = Positioned(positions), torch.randn(B, 11, C)
    parts = [layer(x[:, :3]), layer(x[:, 3:4], start=3), layer(x[:, 4:], start=4)]
    assert torch.equal(torch.cat(parts, 1), layer(x))


def test_waves_have_no_longest_length() -> None:
    positions = SinusoidalPositions(C)
    for length, start in [(3, 0), (200, 0), (7, 1009), (1, 5)]:
        found = positions(length, start, torch.device("cpu"))
        torch.testing.assert_close(found, sinusoidal(length, C, start))


def test_a_learned_table_says_where_it_ends() -> None:
    positions = LearnedPositions(7, C)
    assert positions(7).shape == (7, C)
    with pytest.raises(UserError, match="a sequence has 8 positions, but only 7 were learned; shorten it, or use"):
        positions(1, start=7)


def test_each_learned_position_has_its_own_gradient() -> None:
    positions = LearnedPositions(7, C)
    positions(2, start=3).sum().backward()
    assert positions.table.grad.sum(-1).tolist() == [0, 0, 0, C, C, 0, 0]


def test_waves_made_without_gradients_serve_training() -> None:
    """The table is made once, perhaps while a model translates; training must be able to use it afterwards."""
    for join in ("add", "concatenate"):
        layer, x = Positioned(SinusoidalPositions(C), join), torch.randn(B, T, C, requires_grad=True)
        with torch.inference_mode():
            layer(x)
        layer(x).square().sum().backward()
        assert x.grad is not None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_positions_take_the_precision_of_the_vectors(dtype: torch.dtype) -> None:
    x = torch.randn(B, T, C, dtype=dtype)
    assert Positioned(SinusoidalPositions(C))(x).dtype == dtype
    assert Positioned(SinusoidalPositions(C), "concatenate")(x).dtype == dtype
