"""ELMo's vectors as features: a classifier that reads them, alone or beside words of its own."""

from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from foveate import tasks
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.data.text.labelled import LabelledText
from foveate.errors import UserError
from foveate.experiments import elmo_features
from foveate.tasks.cloze import TASK
from foveate.tasks.learning import learn

CONSOLE = Console(file=StringIO())

GOOD = [
    ("good", f"the {noun} is fine ." if number % 2 else f"a fine {noun} !") for number, noun in enumerate("abcdefgh")
]
BAD = [("bad", f"the {noun} is dull ." if number % 2 else f"a dull {noun} !") for number, noun in enumerate("abcdefgh")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An ELMo after one step."""
    sizes = {"character_width": 4, "filters": (5, 5), "cells": 7, "width": 6, "dropout": 0.0}
    steps = {"steps": 1, "validate_every": 1, "save_every": 1, "average": 1}
    text = {"vocabulary": 30, "max_length": 11, "batch": 256, "validation_examples": 2}
    settings = TASK.recipe(model="elmo-tiny", architecture=sizes, out=tmp_path / "elmo", **steps, **text)
    prose = Prose.from_paragraphs([Paragraph(f"p, line {n}", "", text) for n, (_, text) in enumerate(GOOD + BAD)])
    assert TASK.arrange is not None
    passages = TASK.arrange(prose, settings)
    learn(settings, Splits(passages, passages, passages), CONSOLE)
    return tmp_path / "elmo"


def test_every_way_learns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LabelledText.from_pairs(GOOD + BAD)
    monkeypatch.setattr(elmo_features, "open_source", lambda *_, **__: Splits(text, text, text))
    torch.manual_seed(1)
    options = elmo_features.ElmoFeatures(run=folder, epochs=30, learning_rate=1e-2)
    found = elmo_features.run(options, CONSOLE)
    assert [*found.raw] == ["words", "words and ELMo", "ELMo"]
    for way, figures in found.raw.items():
        assert figures["accuracy"] >= 87.5, way
        assert ("layers" in figures) == ("ELMo" in way)
        assert abs(sum(figures.get("layers", [1.0])) - 1) < 1e-6
    assert [row[0] for row in found.tables[0].rows] == [*found.raw]


def test_another_model_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = type("Other", (), {"model": torch.nn.Linear(1, 1)})
    monkeypatch.setattr(tasks, "load", lambda _: other)
    with pytest.raises(UserError, match="holds no ELMo: train one by foveate train cloze --model elmo-tiny"):
        elmo_features.run(elmo_features.ElmoFeatures(run=tmp_path), CONSOLE)
