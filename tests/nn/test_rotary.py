"""Rotary positions: against complex numbers, and what only distances change."""

import torch

from foveate.nn import Rotary


def test_pairs_of_numbers_turn_like_complex_numbers() -> None:
    """Number i and number i + 3 of the first six; the seventh stays."""
    x, places = torch.randn(2, 3, 5, 7), torch.tensor([[0, 1, 2, 3, 4], [5, 0, 11, 1, 1000]])
    angles = places[:, None, :, None] * torch.tensor([1.0, 100 ** -(1 / 3), 100 ** -(2 / 3)])
    turned = torch.complex(x[..., :3], x[..., 3:6]) * torch.polar(torch.ones_like(angles), angles)
    expected = torch.cat([turned.real, turned.imag, x[..., 6:]], -1)
    torch.testing.assert_close(Rotary(6, base=100.0)(places, torch.float32)(x), expected, atol=1e-4, rtol=0)


def test_products_depend_on_distances_only() -> None:
    q, k, rotary = torch.randn(1, 1, 5, 6), torch.randn(1, 1, 5, 6), Rotary(6)
    products = [
        rotary(places, torch.float32)(q) @ rotary(places, torch.float32)(k).mT
        for places in (torch.arange(5)[None], torch.arange(5)[None] + 13)
    ]
    torch.testing.assert_close(products[0], products[1], atol=1e-4, rtol=0)
    assert not torch.allclose(products[0], q @ k.mT, atol=1e-2)
