"""Texts that are too long for a model, of every task that reads texts: an error of their line, or cut."""

import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from test_every_task import Command, Trained, alike, command, workshop
from workshop import SILENT, Workshop, smallest

import foveate
from foveate import models
from foveate.forms.answers import Answer, Failure
from foveate.forms.blanks import ReadBlanks
from foveate.forms.prose import ReadProse
from foveate.forms.truncation import CutText
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import learn

__all__ = ["command", "workshop"]

POSITIONED = ("bert", "gpt", "transformer", "text-to-image")
"""Families that can learn positions, of which each task takes one where it has one."""

LEARNED = {"positions": "learned", "max_length": 140}
"""Settings of an architecture, where the preset has other positions."""

OF_TEXTS = [name for name in TASKS if isinstance(find_task(name).reads, CutText)]

TEXT_SECOND = ("classify", "pair", "draw")
"""Tasks whose tables begin with something else than a text."""


@pytest.fixture(scope="module", params=OF_TEXTS)
def trained(request: pytest.FixtureRequest, workshop: Workshop) -> Trained:
    task = find_task(request.param)
    if task.start.missing or task.name == "ask":  # the model is that of another run, or needs public weights
        return Trained(task, workshop, workshop.run(task))
    model = smallest(task, tuple(name for name in POSITIONED if name in task.families))
    out = workshop.folder / f"{task.name} with positions"
    settings = LEARNED if "positions" in {part.name for part in fields(models.config_class(model.family))} else {}
    learn(workshop.recipe(task, model.name, out, architecture=settings), console=SILENT)
    return Trained(task, workshop, out)


def lengthened(text: str, most: float) -> str:
    """A text, or the first of two, repeated until it takes more positions; its blanks stay as many."""
    first, tab, second = text.partition("\t")
    more = first.replace("[MASK]", "").split() or ["a"]
    return f"{first} {' '.join(more * (1 + int(most) // len(more)))}{tab}{second}"


def test_limits(trained: Trained) -> None:
    """Models of families that learn positions have some."""
    family = trained.skill.description["family"]
    assert (trained.skill.most_positions < math.inf) == (family in POSITIONED)


def test_run(trained: Trained, command: Command) -> None:
    """One that is too long is an error of its line alone; with --truncate it is cut, and counted."""
    (first, second), most = trained.inputs, trained.skill.most_positions
    if most == math.inf:
        assert command("run", trained.folder, first, *trained.made.flags, "--truncate").status == 0
        return
    given = ("run", trained.folder, first, lengthened(first, most), second, *trained.made.flags)
    ended = command(*given)
    assert f"positions, but the model learned only {most:,}" in ended.error
    assert [bool(line) for line in ended.lines] == [True, False, True]
    whole = command(*given, "--truncate")
    assert whole.status == 0, whole.err
    assert "1 lines were cut to the positions that the model has" in whole.err
    assert len(whole.lines) == 3
    assert all(whole.lines)
    if not trained.draws:
        assert alike(whole.lines[::2], ended.lines[::2])


def test_what_is_cut_fills_the_positions(trained: Trained) -> None:
    """All of them, or half where the model goes on from the text."""
    skill, reads = foveate.load(trained.folder), trained.skill.processor.reads
    if (most := skill.most_positions) == math.inf:
        return
    text = lengthened(trained.inputs[0], most)
    assert isinstance(skill(["", text], **trained.changes)[1], Failure)
    skill.truncate = True
    found = skill.fit(reads.open(text))
    room = most // 2 if reads.goes_on else most
    assert found.cut
    assert room - 8 <= reads.positions(found.prepared) <= room
    answer = skill.run(text, **trained.changes)
    assert isinstance(answer, Answer)
    assert (answer.cut, answer.given) == (True, text)
    assert skill.run(trained.inputs[0], **trained.changes).cut is False


def with_a_long_text(trained: Trained, most: float) -> tuple[Path, ...]:
    """The examples with a first one that is too long."""
    path = trained.made.data[0].with_name(f"long {trained.made.data[0].name}")  # beside its images
    lines = trained.made.data[0].read_text(encoding="utf-8").split("\n")
    if trained.task.name == "tag":
        lines = [*lines[:1] * int(most), *lines]
    else:
        cells = lines[0].split("\t")
        place = int(trained.task.name in TEXT_SECOND)
        cells[place] = lengthened(cells[place], most)
        lines[0] = "\t".join(cells)
    path.write_text("\n".join(lines), encoding="utf-8")
    return (path, *trained.made.data[1:])


def test_eval(trained: Trained, command: Command) -> None:
    """An example that is too long is left out, or cut and measured; both are said."""
    reads: Any = trained.skill.processor.reads
    most, (data, *_) = trained.skill.most_positions, trained.made.data
    if most == math.inf or data.is_dir() or isinstance(reads, ReadBlanks | ReadProse) or reads.goes_on:
        assert command("eval", trained.folder, "--data", *trained.made.data, "--truncate").status == 0
        return  # rows of prose fit, and prompts are short
    paths = with_a_long_text(trained, most)
    ended = command("eval", trained.folder, "--data", *paths, "--output", "answers.txt")
    assert re.search(rf"left out: 1 of \d+ for more than {most:,} positions", ended.err)
    whole = command("eval", trained.folder, "--data", *paths, "--truncate", "--output", "cut.txt")
    assert whole.status == 0, whole.err
    assert re.search(rf"1 of \d+ are cut to the {most:,} positions that the model has", whole.err)
    answers, cut = (Path(name).read_text(encoding="utf-8").split("\n") for name in ("answers.txt", "cut.txt"))
    assert not answers[0]
    assert cut[0]
    assert trained.draws or alike(cut[1:], answers[1:])


def test_nothing_to_cut(workshop: Workshop, command: Command) -> None:
    """Models of other things say so."""
    task = find_task("classify-image")
    ended = command("run", workshop.run(task), "a.png", "--truncate")
    assert ended.error == "--truncate is for texts that can be too long, and this model reads none"
