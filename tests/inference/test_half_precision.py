"""Linear layers in half precision: nearly the same logits, and the model itself stays as it is."""

import pytest
import torch

from foveate import models
from foveate.decoding import Decoding, generate
from foveate.inference.half_precision import HalfLinear, in_half_precision


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float16, 3e-3), (torch.bfloat16, 3e-2)])
def test_logits_are_nearly_the_same(dtype: torch.dtype, bound: float) -> None:
    torch.manual_seed(0)
    model = models.create("gpt-tiny", vocabulary=53, max_length=20).eval()
    tokens = torch.randint(53, (2, 11))
    before = model(tokens).logits.detach()
    half = in_half_precision(model, dtype)
    with torch.no_grad():
        difference = (half(tokens).logits - before).abs().max()
    assert 0 < difference < bound * before.abs().max()
    assert torch.equal(model(tokens).logits, before)
    assert half.embedding.weight is model.embedding.weight
    assert isinstance(half.output, HalfLinear)
    for rows in (0, 1, 9):
        assert half.output(torch.randn(rows, 1, 256)).shape == (rows, 1, 53)
    (written,) = generate(half, [[5, 7]], Decoding("greedy", max_new_tokens=4), ())
    assert len(written.tokens) == 4
