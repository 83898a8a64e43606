"""`foveate bench copying`: what is trained and measured, with tiny sizes."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from foveate.contracts import Output
from foveate.errors import UserError
from foveate.experiments import compare, copying
from foveate.experiments.copying import FIRST, MODELS, Copying, training_length

TINY = {"lengths": (2, 3), "vocabulary": 5, "steps": 2, "batch_tokens": 6, "width": 4}


def test_a_table_and_a_picture(tmp_path: Path) -> None:
    found = compare("copying", Copying(out=tmp_path, **TINY), Console(quiet=True))
    assert found.tables[0].headings == ["tokens", *MODELS]
    assert [row[0] for row in found.tables[0].rows] == ["2", "3"]
    assert len(found.raw) == 2 * len(MODELS)
    assert "chance is 20.0" in found.notes[0]
    assert list(found.figures) == [""]


@pytest.mark.parametrize(("order", "expected"), [("forward", [0, 1, 2]), ("reversed", [2, 1, 0])])
def test_what_a_model_is_given_and_asked(order: Any, expected: list[int]) -> None:
    given: list[torch.Tensor] = []

    def model(source: torch.Tensor, lengths: torch.Tensor, known: torch.Tensor) -> Output:
        given.extend([source, known])
        return Output(torch.zeros(*source.shape, 9))

    _, labels = copying._predict(Copying(order=order, **TINY), model, 2, 3)
    source, known = given
    assert source.min() >= FIRST
    assert torch.equal(labels, source[:, expected])
    assert torch.equal(known[:, 1:], source[:, expected[:-1]])


def test_lengths_grow() -> None:
    generator = random.Random(1)
    early, late = ([training_length(1000, progress, generator) for _ in range(500)] for progress in (0.0, 0.5))
    assert (min(early), max(early)) == (2, 8)
    assert min(late) == 2
    assert 900 < max(late) <= 1000
    assert sum(length > math.sqrt(2000) for length in late) == pytest.approx(250, abs=50)


def test_wrong_sizes() -> None:
    with pytest.raises(UserError, match="lengths are 3 2, but must increase"):
        compare("copying", Copying(lengths=(3, 2)), Console(quiet=True))
    with pytest.raises(UserError, match="vocabulary is 1, but must be at least 2"):
        compare("copying", Copying(vocabulary=1), Console(quiet=True))
