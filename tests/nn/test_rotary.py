"""Rotary positions: against complex numbers, and what only distances change."""

import pytest
import torch
from transformers import LlamaConfig, Qwen2VLTextConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding

from foveate.nn import Rotary, SectionedRotary
from foveate.nn.rotary import RotaryScaling


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


def test_a_larger_base_is_that_of_transformers() -> None:
    """Which makes the factor of the length that is read: here 1.5 * 40 / 20 - 0.5."""
    rope = {"rope_type": "dynamic", "factor": 1.5, "rope_theta": 500.0}
    config = LlamaConfig(hidden_size=24, num_attention_heads=2, max_position_embeddings=20, rope_parameters=rope)
    theirs, size = ROPE_INIT_FUNCTIONS["dynamic"](config, torch.device("cpu"), seq_len=40)
    assert size == 1
    rotation = Rotary(12, 500.0, RotaryScaling("ntk", 2.5))(torch.tensor([[1]]), torch.float32)
    torch.testing.assert_close(rotation.cosine[0, 0, 0, :6], theirs.cos())


def test_sections_of_coordinates_are_those_of_transformers() -> None:
    rope = {"rope_type": "default", "rope_theta": 100.0, "mrope_section": [2, 3, 3]}
    theirs = Qwen2VLRotaryEmbedding(Qwen2VLTextConfig(hidden_size=32, num_attention_heads=2, rope_parameters=rope))
    places = torch.randint(50, (2, 7, 3))
    cosine, sine = theirs(torch.zeros(1), places.movedim(-1, 0))
    rotation = SectionedRotary((2, 3, 3), 100.0)(places, torch.float32)
    torch.testing.assert_close(rotation.cosine[:, 0], cosine)
    torch.testing.assert_close(rotation.sine[:, 0], sine)
    with pytest.raises(ValueError, match="positions have 2 coordinates, but 3 sections turn"):
        SectionedRotary((2, 3, 3))(places[..., :2], torch.float32)
