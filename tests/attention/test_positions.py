"""Sinusoidal positions: numbers by hand, and what a positional encoding is for."""

import math

import pytest
import torch

from foveate.attention import sinusoidal

LONG = 5003


@pytest.mark.parametrize("width", [2, 3, 4])
def test_values_by_hand(width: int) -> None:
    """`sin(i / 10000^(2j/D))` and the cosine beside it; an odd width ends with a sine."""
    second = 10000 ** (-2 / width)
    expected = [[math.sin(i), math.cos(i), math.sin(i * second), math.cos(i * second)][:width] for i in range(5)]
    torch.testing.assert_close(sinusoidal(5, width), torch.tensor(expected), atol=1e-6, rtol=0)


def test_the_second_wave_of_width_four_is_a_hundred_times_slower() -> None:
    row = sinusoidal(101, 4)[100]
    torch.testing.assert_close(row[2:], torch.tensor([math.sin(1), math.cos(1)]), atol=1e-6, rtol=0)


def test_unique() -> None:
    table = sinusoidal(LONG, 64)
    assert len(table.unique(dim=0)) == LONG
    distances = torch.cdist(table[:1009].double(), table[:1009].double()) + 9 * torch.eye(1009)
    assert distances.min() > 0.1


def test_distances_are_consistent_across_lengths() -> None:
    """A place has one vector whatever the length; how alike two are depends only on how far apart they stand."""
    short, long = sinusoidal(11, 64), sinusoidal(LONG, 64)
    assert torch.equal(short, long[:11])
    for apart in (1, 7, 100):
        distances = (long[apart:].double() - long[:-apart].double()).norm(dim=-1)
        torch.testing.assert_close(distances, distances[:1].expand_as(distances), atol=1e-5, rtol=0)
    assert (long[1] - long[0]).norm() < (long[7] - long[0]).norm()


def test_bounded_and_usable_beyond_any_training_length() -> None:
    far = sinusoidal(7, 64, start=10**6)
    assert far.isfinite().all()
    assert far.abs().max() <= 1
    torch.testing.assert_close(far.norm(dim=-1), torch.full((7,), math.sqrt(32)))
    # Exact there, too: angles are computed in double precision.
    assert far[3, 0].item() == pytest.approx(math.sin(10**6 + 3), abs=1e-6)


def test_deterministic() -> None:
    first = sinusoidal(13, 10)
    torch.manual_seed(1)
    torch.rand(3)
    assert torch.equal(sinusoidal(13, 10), first)


def test_a_later_start_is_the_rest_of_the_table() -> None:
    assert torch.equal(sinusoidal(5, 10, start=8), sinusoidal(13, 10)[8:])
    assert sinusoidal(0, 10).shape == (0, 10)
