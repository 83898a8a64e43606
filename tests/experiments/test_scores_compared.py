"""`foveate bench scores` with few steps: every score learns with every projection, and is measured."""

from pathlib import Path

import pytest
import torch
from rich.console import Console

from foveate.attention import Additive, Biaffine, Dot, ScaledDot
from foveate.experiments import compare, scores


def test_a_table_of_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "memory", lambda *_: 2**20)
    small = {"lengths": (3, 5), "head_width": 7, "items": 3, "names": 5, "width": 8, "steps": 2, "repeats": 1}
    found = compare("scores", scores.Scores(out=tmp_path, **small), Console(quiet=True))
    cost, steps, entropy = found.tables
    assert [row[0] for row in cost.rows] == [row[0] for row in steps.rows] == list(scores.SCORES)
    assert all(row[-1] == "1.0" for row in cost.rows)
    assert all(cell.endswith("% in the end") for row in steps.rows for cell in row[1:])
    assert all(0 <= float(cell) <= 1.1 for row in entropy.rows for cell in row[1:])  # log 3, rounded


def test_scores_by_name() -> None:
    kinds = [type(scores.make_score(name, 7)) for name in scores.SCORES]
    assert kinds == [Dot, ScaledDot, Biaffine, Additive, Additive]
    assert scores.make_score("additive, relu", 7).activation is torch.relu
