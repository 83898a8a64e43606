"""Linear layers of 8 bits: nearly the same logits, and the model itself stays as it is."""

import pytest
import torch
from torch import nn

from foveate import models
from foveate.decoding import Decoding, generate
from foveate.errors import UserError
from foveate.inference.int8 import Int8Linear, in_int8


def test_logits_are_nearly_the_same() -> None:
    torch.manual_seed(0)
    model = models.create("gpt-tiny", vocabulary=53, max_length=20).eval()
    tokens = torch.randint(53, (2, 11))
    before = model(tokens).logits.detach()
    small = in_int8(model)
    with torch.no_grad():
        difference = (small(tokens).logits - before).abs().max()
    assert 0 < difference < 0.1 * before.abs().max()
    assert torch.equal(model(tokens).logits, before)
    assert small.embedding.weight is model.embedding.weight
    assert isinstance(small.output, Int8Linear)
    (written,) = generate(small, [[5, 7]], Decoding("greedy", max_new_tokens=4), ())
    assert len(written.tokens) == 4
    with pytest.raises(ValueError, match="cannot be saved"):
        small.state_dict()


def test_rows_of_zeros_and_of_other_sizes() -> None:
    """Each row has a scale of its own."""
    linear = nn.Linear(4, 3)
    linear.weight.data = torch.tensor([[0.0, 0, 0, 0], [1e-4, 0, -1e-4, 5e-5], [100.0, 50, -25, 0]])
    linear.bias.data.zero_()
    x = torch.tensor([[1.0, -0.5, 0.25, 0.75]])
    with torch.no_grad():
        wanted, found = linear(x)[0], Int8Linear(linear)(x)[0]
    assert found[0] == 0
    assert torch.allclose(found[1:] / wanted[1:], torch.ones(2), atol=0.03)


def test_one_row_is_as_in_a_batch() -> None:
    torch.manual_seed(0)
    layer, x = Int8Linear(nn.Linear(65, 7)), torch.randn(3, 1, 65) * torch.tensor([1e-6, 1.0, 1e6]).view(3, 1, 1)
    with torch.no_grad():
        together = layer(x)
        for row, wanted in zip(x, together, strict=True):
            # Without products of 8 bits, inputs have 7: steps are twice as large.
            assert (layer(row) - wanted).norm() < (0.04 if layer._reduced else 0.02) * wanted.norm()
        assert torch.equal(layer(torch.zeros(1, 65))[0], layer.bias)


def test_only_on_the_cpu() -> None:
    with pytest.raises(UserError, match="int8 is for models on the CPU"):
        in_int8(nn.Linear(2, 2, device="meta"))
