"""Dropout: its share, its scale, its gradient, and that seeds repeat it."""

import pytest
import torch

from foveate.nn import Dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_drops_its_share_and_keeps_the_mean(share: float) -> None:
    y = Dropout(share)(torch.ones(499, 997))
    kept = y != 0
    # 497,503 places: five standard deviations are below 0.0036
    assert abs(float(kept.float().mean()) - (1 - share)) < 0.0036
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - share)), rtol=1e-4, atol=0)


def test_places_are_dropped_independently() -> None:
    dropped = (Dropout(0.5)(torch.ones(499, 997)) == 0).float()
    for other in (dropped.roll(1, 1), dropped.roll(2, 1), dropped.roll(4, 1), dropped.roll(1, 0)):
        assert abs(float((dropped * other).mean()) - 0.25) < 0.0036


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(7, 11, 13, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_a_seed_repeats_it_and_two_calls_differ() -> None:
    layer, x = Dropout(0.3), torch.ones(17, 19)
    torch.manual_seed(5)
    first, second = layer(x), layer(x)
    torch.manual_seed(5)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


def test_nothing_is_dropped_outside_training_or_with_a_share_of_0() -> None:
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1.0)(x), torch.zeros_like(x))


def test_sizes_that_are_no_multiple_of_four_and_other_types() -> None:
    assert Dropout(0.5)(torch.ones(3, dtype=torch.float64)).dtype == torch.float64
    y = Dropout(0.25)(torch.ones(61, 67, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16
    assert set(y.unique().tolist()) == {0.0, float(torch.tensor(4 / 3).bfloat16())}
    assert Dropout(0.5)(torch.ones(0, 5)).shape == (0, 5)
