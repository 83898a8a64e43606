"""Trainings that are killed and resumed end with the same bits: a few kills of `benchmarks/kills.py`."""

import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import kills
from workshop import Workshop

from foveate.tasks import find_task
from foveate.tasks.learning import learn


@pytest.mark.parametrize("task", ["translate", "gan"])
def test_a_killed_training_ends_with_the_same_bits(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a step, and while a file is written."""
    moments = iter([f"write {random.Random(task).randint(5, 60)}", "step 3"])
    monkeypatch.setattr(kills, "draw_moment", lambda rng: next(moments))
    assert kills.kill_task(Workshop(tmp_path), task, 2, random.Random()) == (2, "")


def test_what_differs_is_told(tmp_path: Path) -> None:
    """The comparison can fail: another seed has other weights."""
    workshop, task = Workshop(tmp_path), find_task("translate")
    for name, seed in (("whole", 1), ("other", 2)):
        recipe = workshop.recipe(task, "rnn-attentive", tmp_path / name, steps=kills.STEPS, save_every=2, seed=seed)
        learn(recipe, console=kills.SILENT)
    assert kills.difference(tmp_path / "whole", tmp_path / "whole") == ""
    assert kills.difference(tmp_path / "whole", tmp_path / "other") == "OTHER weights"
