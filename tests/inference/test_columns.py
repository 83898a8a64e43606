"""Weights stored by columns: the same values in another order."""

from pathlib import Path

import torch

from foveate import models
from foveate.inference.columns import store_by_columns
from foveate.tensor_files import write_tensors


def test_wide_weights_are_stored_by_columns_and_nothing_else_changes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = models.create("gpt-tiny", vocabulary=300, max_length=20).eval()
    tokens = torch.randint(300, (2, 11))
    before = model(tokens).logits.detach()
    write_tensors(tmp_path / "before", model.state_dict())
    with torch.inference_mode():
        store_by_columns(model)
        store_by_columns(model)
    block = model.stack.blocks[0]
    assert not block.feedforward.inner.weight.is_contiguous()
    assert not model.output.weight.is_contiguous()
    assert model.output.weight is model.embedding.weight
    assert block.feedforward.outer.weight.is_contiguous()
    assert block.self.query.weight.is_contiguous()
    torch.testing.assert_close(model(tokens).logits.detach(), before)
    write_tensors(tmp_path / "after", model.state_dict())
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    model(tokens).logits.sum().backward()
    assert model.output.weight.grad is not None
