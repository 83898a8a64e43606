"""Going on from a run of the same task: its weights, its vocabulary and its sizes."""

import shutil
from io import StringIO
from pathlib import Path

import pytest
import tiny_prose
import torch
from rich.console import Console

import foveate
from foveate.cli.train import settings
from foveate.errors import UserError
from foveate.tasks import TASKS
from foveate.tasks.autoencode import TASK as AUTOENCODE
from foveate.tasks.cloze import TASK
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.recipe import Recipe

QUIET = Console(file=StringIO(), width=200)

SIZES = {"width": 16, "heads": 2, "layers": 1, "feedforward": 24, "max_length": 32}


def cloze(out: Path, data: Path, start: Path | None = None, **sizes: int) -> Recipe:
    training = {"steps": 2, "warmup": 1, "threads": 1, "average": 1, "validate_every": 2, "save_every": 2}
    text = {"data": data, "vocabulary": 90, "max_length": 30, "batch": 64, "device": "cpu"}
    given = {} if start and not sizes else {"architecture": {**SIZES, **sizes}}
    return TASK.recipe(start=start, out=out, **training, **text, **given)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a text, another one, and a run on the first."""
    folder = tmp_path_factory.mktemp("runs")
    first, *_ = tiny_prose.write_files(folder)
    (folder / "other.txt").write_text("Zebras quarrel.\n\nA quick zebra naps.\n\n" * 20, encoding="utf-8")
    learn(cloze(folder / "first", first), console=QUIET)
    return folder


def test_a_run_goes_on_with_other_text(place: Path, tmp_path: Path) -> None:
    recipe = cloze(tmp_path / "next", place / "other.txt", place / "first")
    assert recipe.architecture.width == 16
    first = foveate.load(place / "first")
    begun = Lesson(TASK, recipe).build(**first.processor.sizes())
    assert all(torch.equal(one, first.model.state_dict()[name]) for name, one in begun.state_dict().items())
    found = learn(recipe, console=QUIET)
    assert found.processor.reads.tokenizer.pieces(range(20)) == first.processor.reads.tokenizer.pieces(range(20))
    assert len(found.processor.reads.tokenizer) == len(first.processor.reads.tokenizer)
    assert str(place / "first") in found.description["contents"]


def test_what_a_run_began_from_may_go(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "first", tmp_path / "first")
    learn(cloze(tmp_path / "next", place / "other.txt", tmp_path / "first"), console=QUIET)
    shutil.rmtree(tmp_path / "first")
    assert foveate.load(tmp_path / "next").run("A quick [MASK] naps.")


def test_flags_and_the_sizes_of_the_run(place: Path) -> None:
    found = settings("cloze", ["--from", str(place / "first"), "--out", "x", "--architecture.dropout", "0.3"])
    assert found.model == "bert-tiny"
    assert (found.architecture.width, found.architecture.dropout) == (16, 0.3)


def test_a_run_of_another_task(place: Path) -> None:
    with pytest.raises(UserError, match=r"first is a run of cloze, but autoencode begins from one of its own$"):
        AUTOENCODE.recipe(start=place / "first")


def test_other_sizes(place: Path, tmp_path: Path) -> None:
    wrong = cloze(tmp_path / "next", place / "other.txt", place / "first", width=8)
    with pytest.raises(UserError, match=r"probably it has other sizes: leave them out$"):
        learn(wrong, console=QUIET)


def test_another_family(place: Path, tmp_path: Path) -> None:
    other = TASK.recipe(start=place / "first", model="xlnet-tiny", out=tmp_path / "next")
    with pytest.raises(UserError, match=r"first is a bert, but xlnet-tiny is a xlnet$"):
        Lesson(TASK, other).check()


@pytest.mark.parametrize("task", TASKS)
def test_every_task_begins_from_trained_weights(task: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^there is no folder .*nothing, nor trained weights of this name"):
        foveate.train(settings(task, ["--from", str(tmp_path / "nothing"), "--out", str(tmp_path / "run")]))
