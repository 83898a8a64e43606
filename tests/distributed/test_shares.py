"""Each process' share of a batch, and of a model."""

import pytest
import torch
from torch import nn

import foveate
from foveate.contracts import Batch, label_batch
from foveate.nn import DecoderBlock, TransformerBlock
from foveate.training.parallel import fingerprint
from foveate.training.parallel.batch_sharding import share
from foveate.training.parallel.plan import units
from foveate.training.parallel.strategy import is_large


def batch(rows: int) -> Batch:
    tokens = torch.arange(rows * 2).view(rows, 2)
    return label_batch({"tokens": tokens, "scale": torch.tensor(0.5)}, tokens + 100, "some lines")


def test_every_row_belongs_to_one_process() -> None:
    parts = [share(batch(5), rank, 3) for rank in range(3)]
    assert [part.labels[:, 0].tolist() for part in parts] == [[100, 106], [102, 108], [104]]
    assert [part.inputs["tokens"][:, 0].tolist() for part in parts] == [[0, 6], [2, 8], [4]]
    assert [float(part.inputs["scale"]) for part in parts] == [0.5] * 3
    assert sum(part.total_weight for part in parts) == batch(5).total_weight
    assert parts[1].source == "some lines"


def test_a_process_without_rows_gets_one_that_does_not_count() -> None:
    part = share(batch(2), 2, 3)
    assert part.inputs["tokens"].tolist() == [[0, 1]]
    assert part.padding


def test_what_is_no_row_an_example_is_not_cut() -> None:
    odd = label_batch({"tokens": torch.zeros(3, 2)}, torch.zeros(5, 7, dtype=torch.long), "odd")
    with pytest.raises(ValueError, match="5 examples and 3 rows of 'tokens' cannot be separated"):
        share(odd, 0, 2)


def test_other_labels_have_another_fingerprint() -> None:
    assert fingerprint([batch(3), batch(5)]) == fingerprint([batch(3), batch(5)])
    assert fingerprint([batch(3), batch(5)]) != fingerprint([batch(5), batch(3)])


def test_a_model_that_would_fill_half_of_the_memory_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(1000, 999)  # 16 bytes each of 999,999 weights
    monkeypatch.setattr("foveate.training.parallel.strategy.device_memory", lambda device: 64_000_000)
    assert not is_large(model, torch.device("cpu"), 1)
    assert not is_large(model, torch.device("cpu"), 2)
    assert is_large(model, torch.device("cpu"), 3)
    assert not is_large(model, torch.device("cuda"), 3)


def test_the_plan_gathers_a_transformer_block_by_block() -> None:
    model = foveate.create("transformer-base", src_vocab=13, tgt_vocab=13, device="meta")
    assert [type(unit) for unit in units(model)] == [TransformerBlock] * 6 + [DecoderBlock] * 6
