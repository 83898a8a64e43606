"""Filling in words from end to end: trained, saved, loaded, asked, measured, looked at."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from tiny_prose import SETTINGS, write_files

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.forms.blanks import FillOptions
from foveate.tasks.cloze import TASK
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tensor_files import read_tensors

CONSOLE = Console(file=StringIO())

SIZES = {
    "width": 24,
    "heads": 2,
    "feedforward": 48,
    "layers": 1,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "norm": "pre",
    "positions": "relative",
}


def recipe(out: Path, files: list[Path], steps: int = 200, **architecture: Any) -> Recipe:
    text = {"tokens": "words", "vocabulary": 60, "max_length": 29, "hidden": 0.3, "batch": 512}
    training = {**SETTINGS, "learning_rate": 2e-2, "validate_every": 20, "save_every": 20, "steps": steps}
    settings = {**text, **training, "model": "bert-tiny", "architecture": SIZES | architecture}
    return TASK.recipe(data=files, validation=files, out=out, validation_examples=20, **settings)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_files(tmp_path_factory.mktemp("prose"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, files: list[Path]) -> Path:
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("cloze") / "run"
    learn(recipe(out, files), console=CONSOLE)
    return out


def test_it_fills_in_what_it_has_read(folder: Path) -> None:
    """A whale, a ship, a cow and a cart come home; "A" begins what a sailor or a farmer does."""
    task = foveate.load(folder)
    (blank,) = task.run("The ship comes [MASK].").blanks
    assert len(blank.words) == 5
    assert "home" in blank.words[:3]
    first, second = task(["A [MASK] rests [MASK].", ""], best=2)
    assert first.blanks[0].words[0] in ("sailor", "farmer")
    assert first.blanks[0].probabilities[0] > first.blanks[0].probabilities[1]
    assert first.filled == f"A {first.blanks[0].words[0]} rests {first.blanks[1].words[0]}."
    assert (second.line, second.blanks) == ("", [])


def test_it_is_measured_beside_ngrams(folder: Path, files: list[Path]) -> None:
    ways = foveate.load(folder).evaluate(files[:1], NoOptions(), CONSOLE).figures["ways"]
    assert 1 < ways["trigram"]["perplexity"] < ways["unigram"]["perplexity"] < 20
    assert 1 < ways["bert-tiny"]["perplexity"] < ways["unigram"]["perplexity"] / 2
    assert 50 < ways["bert-tiny"]["accuracy"] <= 100


def test_without_its_text_it_is_measured_alone(folder: Path, files: list[Path], tmp_path: Path) -> None:
    task = foveate.load(folder)
    task.description["contents"] = {}
    found = task.evaluate(files, NoOptions(), CONSOLE)
    assert [*found.figures["ways"]] == ["bert-tiny"]
    assert "no n-grams to compare with: the training text is not there any more as it was" in found.notes


def test_on_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(folder), "The ship [MASK] home.", "", "--best", "1", "--picture", str(tmp_path / "look.png")])
    out = capsys.readouterr().out
    first, second = out.splitlines()
    text, blank = first.split("\t")
    assert text == f"The ship {blank.split()[0]} home."
    assert blank.split()[0] in ("comes", "is", "rests")
    assert second == ""
    assert (tmp_path / "look.png").stat().st_size > 1000
    page = tmp_path / "look.html"
    main(["look", str(folder), "The ship [MASK] home.", "--out", str(page)])
    assert "[MASK]: " in page.read_text(encoding="utf-8")
    main(["look", str(folder), "The ship comes home.", "--out", str(page)])  # a text without blanks can be looked at
    assert "[MASK]: " not in page.read_text(encoding="utf-8")


def test_a_line_without_a_mask_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are answered."""
    lines = tmp_path / "lines.txt"
    lines.write_text("The ship [MASK] home.\nno blanks\nA [MASK] rests.\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folder), "--file", str(lines)])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert [bool(line) for line in out.splitlines()] == [True, False, True]
    assert "'no blanks' has no [MASK]" in err
    assert len(err.splitlines()) == 1


def test_what_cannot_be_filled_in(folder: Path, files: list[Path], tmp_path: Path) -> None:
    task = foveate.load(folder)
    with pytest.raises(UserError, match="best is 0, but must be at least 1"):
        task.run("[MASK]", FillOptions(best=0))
    first, second, third = task(["The [MASK].", "", "no blanks"])
    assert (len(first.blanks), second.blanks) == (1, [])
    assert isinstance(third, Failure)
    assert third.reason.startswith("'no blanks' has no [MASK]: write it where")
    assert [one.long for one in task(["The [MASK]", " ".join(["ship"] * 30) + " [MASK]"])] == [False, True]
    short = learn(recipe(tmp_path / "run", files, 1, positions="learned", max_length=32), console=CONSOLE)
    found = short(["The ship [MASK] home.", " ".join(["[MASK]"] * 32)])
    assert found[1].reason.endswith("takes 34 positions, but the model learned only 32")
    assert found[0].line


def test_text_that_cannot_be_learned(tmp_path: Path, files: list[Path]) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"empty\.txt: there is no text in it"):
        learn(recipe(tmp_path / "a", [empty]), console=CONSOLE)
    none = recipe(tmp_path / "b", files)
    none.reads.hidden = 1.5
    with pytest.raises(UserError, match=r"hidden is 1\.5, but must be above 0 and below 1"):
        learn(none, console=CONSOLE)
    short = recipe(tmp_path / "c", files, positions="learned", max_length=32)
    short.reads.max_length = 33
    with pytest.raises(UserError, match="a sequence has 33 positions, but only 32 were learned"):
        learn(short, console=CONSOLE)


def test_a_resumed_training_has_the_same_weights(files: list[Path], tmp_path: Path) -> None:
    learn(recipe(tmp_path / "whole", files, 40), console=CONSOLE)
    for steps in (20, 40):
        learn(recipe(tmp_path / "parts", files, steps), console=CONSOLE)
    whole, resumed = (weights(tmp_path / name) for name in ("whole", "parts"))
    assert len(whole) > 5
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Of the checkpoint of step 40."""
    (file,) = folder.glob("checkpoints/step-*40.safetensors")
    return {name: value for name, value in read_tensors(file).tensors.items() if "random" not in name}


STEPS = {"xlnet-tiny": 300, "elmo-tiny": 60}

OTHERS = {
    "xlnet-tiny": {"width": 24, "heads": 2, "feedforward": 48, "layers": 1, "dropout": 0.0, "attention_dropout": 0.0},
    "elmo-tiny": {"character_width": 8, "filters": (8, 8, 8), "cells": 32, "width": 24, "layers": 1, "dropout": 0.0},
}


@pytest.mark.parametrize("model", OTHERS)
def test_other_families(model: str, tmp_path: Path, files: list[Path]) -> None:
    """XLNet, which learns in random orders, and ELMo, which reads from both sides: each fills in what it has read."""
    torch.manual_seed(0)
    text = {"tokens": "words", "vocabulary": 60, "max_length": 29, "hidden": 0.5, "batch": 512}
    training = {**SETTINGS, "validate_every": 20, "save_every": 20, "steps": STEPS[model]}
    settings = {**text, **training, "model": model, "architecture": OTHERS[model], "validation_examples": 20}
    learn(TASK.recipe(data=files, validation=files, out=tmp_path / "run", **settings), console=CONSOLE)
    task = foveate.load(tmp_path / "run")
    (blank,) = task.run("The ship comes [MASK].").blanks
    assert "home" in blank.words[:3]
    assert abs(sum(task.run("The ship [MASK] home.", FillOptions(best=999)).blanks[0].probabilities) - 1) < 0.2
    ways = task.evaluate(files[:1], NoOptions(), CONSOLE).figures["ways"]
    assert 1 < ways["trigram"]["perplexity"] < ways["unigram"]["perplexity"] < 20
    assert 1 < ways[model]["perplexity"] < ways["unigram"]["perplexity"] / 2
    figure = task.picture(task.run("The ship comes [MASK]."))
    assert (figure is None) == (model == "elmo-tiny")
