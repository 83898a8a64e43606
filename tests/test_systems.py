"""The page of every system is made of recorded runs: each record is complete, and its command is one that there is."""

import json
import re
import shlex
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from recorded import RECORDS, Record, systems, value_of, without

from foveate import cli, models
from foveate.cli import bench
from foveate.cli.train import PROCESSES, settings
from foveate.data.sources import SOURCES
from foveate.experiments import Comparison
from foveate.interop.pretrained import PRETRAINED
from foveate.tasks import TASKS, find_task
from foveate.tasks.recipe import Recipe
from foveate.tasks.start.parts import LanguageModelBody

ROOT = Path(__file__).parent.parent

NOT_HERE = ("--from", PROCESSES)
"""Flags of a command that need what is not here: trained weights, and several processes."""


@cache
def recipe_of(command: str) -> Recipe:
    """What a training's command says, without the weights that it begins from."""
    verb, kind, task, *flags = shlex.split(command)
    assert (verb, kind) == ("foveate", "train")
    recipe: Recipe = settings(task, without(flags, NOT_HERE))
    return recipe


def trainings(record: Record) -> list[str]:
    """The trainings that a figure takes, in their order."""
    return [*record.before, *([record.command] if record.task else [])]


@pytest.fixture(params=RECORDS)
def record(request: pytest.FixtureRequest) -> Record:
    return RECORDS[request.param]


def test_the_page_is_what_the_records_give() -> None:
    assert systems.PAGE.read_text(encoding="utf-8") == systems.page(), "run python benchmarks/systems.py"


def test_every_record_is_in_the_page() -> None:
    text = systems.TEXT.read_text(encoding="utf-8")
    assert set(re.findall(r"\{([^.}]+)\.", text)) == set(RECORDS)


def test_the_text_around_the_figures_has_none_of_its_own() -> None:
    """But sizes, such as layers: results come from records."""
    text = systems.TEXT.read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert not [cells[2] for cells in rows if re.search(r"\b\d", re.sub(r"\{[^}]*\}|`[^`]*`|\([^)]*\)", "", cells[2]))]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_complete(name: str) -> None:
    """Nothing is left out: what is not known is null."""
    path = systems.RECORDS / f"{name}.json"
    assert list(json.loads(path.read_text(encoding="utf-8"))) == [part.name for part in fields(Record)]
    record = RECORDS[name]
    assert re.fullmatch(r"[0-9a-f]{7,40}", record.commit)
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", record.date)
    assert record.seeds >= 1
    assert record.minutes is None or record.minutes > 0
    assert (record.preset is None) == (record.task is None)
    assert record.figure.name != record.baseline.name


def stated(page: str) -> set[float]:
    """The numbers of a page of docs."""
    text = (systems.PAGE.parent / page).read_text(encoding="utf-8").replace(",", "")
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}


def test_the_page_of_the_system_states_the_figures(record: Record) -> None:
    numbers = stated(record.page)
    assert not [one for one in (record.figure, record.baseline, *record.beside) if one.value not in numbers]


def test_a_training_is_of_the_preset_of_its_row(record: Record) -> None:
    if record.task is None:
        return
    assert record.preset in find_task(record.task).presets()
    if value_of(record.words, "--model") is None and value_of(record.words, "--from") in PRETRAINED:
        return  # the preset is that of the weights; the run shows it (tests/tasks/test_recorded_commands.py)
    assert recipe_of(record.command).model == record.preset


def test_data_by_name_serve_the_task(record: Record) -> None:
    for command in trainings(record):
        recipe = recipe_of(command)
        if recipe.examples.source is not None:
            assert all(recipe.task in SOURCES[part].tasks for part in recipe.examples.source.split("+"))
        else:
            assert recipe.examples.data


def test_a_run_that_is_begun_from_or_judges_was_made_before(record: Record) -> None:
    known = {*PRETRAINED} | {value_of(shlex.split(command), "--out") for command in record.before}
    flags = ("--from", "--reward", "--judge", "--matcher")
    asked = [
        value_of(shlex.split(command), flag) for command in (record.command, record.measured or "") for flag in flags
    ]
    assert {one for one in asked if one is not None} <= known


def test_what_is_measured_is_what_was_trained(record: Record) -> None:
    if record.measured is None:
        assert record.task is None
        return
    verb, kind, folder, *_ = shlex.split(record.measured)
    assert (verb, kind, folder) == ("foveate", "eval", value_of(record.words, "--out"))


def test_a_comparison_has_options_that_there_are(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    if record.words[:2] != ["foveate", "bench"]:
        assert record.task or (ROOT / record.words[1]).is_file()
        return
    compared: list[Any] = []
    monkeypatch.setattr(bench, "compare_seeds", lambda *told: compared.append(told) or Comparison("none", [], {}, {}))
    monkeypatch.setattr(bench, "save", lambda *_: [])
    cli.main(record.words[1:])
    assert compared[0][0] == record.words[2]


def rows() -> list[str]:
    return [
        line
        for line in systems.TEXT.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| (?!---|system|quest)", line)
    ]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split(" | ")[0].strip("| "))
def test_a_row_has_a_figure_or_the_tests_that_show_it(row: str) -> None:
    shown = re.findall(r"`(tests/[^`]+)`", row)
    assert re.search(r"\{[^}]+\.result\}", row) or shown
    assert not [path for path in shown if not (ROOT / path).exists()]


def test_presets_that_a_row_names_are_there() -> None:
    """Names in the column of commands are presets, flags, commands or names of comparisons."""
    commands = [row.strip("| ").split(" | ")[1] for row in rows()]
    named = {name for cell in commands for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9.]+)+)`", cell)}
    known = set(models.presets()) | set(TASKS) | {"teacher-forcing"}
    assert named
    assert named <= known


def test_the_tasks_that_begin_from_minilm_are_those_that_are_named() -> None:
    (cell,) = re.findall(r"`--from minilm` on ([^|]+) \|", systems.TEXT.read_text(encoding="utf-8"))
    named = set(re.findall(r"`([a-z-]+)`", cell))
    starts = {task: find_task(task).start for task in TASKS}
    assert named == {task for task, one in starts.items() if isinstance(getattr(one, "body", one), LanguageModelBody)}


README = (ROOT / "README.md").read_text(encoding="utf-8")


def task_rows() -> dict[str, str]:
    """The result that the README's table has for each row, by the names of its tasks."""
    table = README.partition("| task | what it learns |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.strip("| ").split(" | ") for line in table]
    return {row[0].partition("]")[0].strip("["): row[-1] for row in cells}


@pytest.mark.parametrize("tasks", task_rows())
def test_the_readme_has_the_figures_of_the_records(tasks: str) -> None:
    """A count that a figure is among is none. Whisper is not trained, and stands beside those that transcribe."""
    result = re.sub(r"among \d+", "", task_rows()[tasks])
    own = [one for one in RECORDS.values() if one.task in tasks.split(", ")]
    own += [RECORDS["whisper"]] if tasks == "transcribe" else []
    known = {figure.value for one in own for figure in (one.figure, one.baseline, *one.beside)}
    shown = {float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w-])", result)}
    assert shown
    assert shown <= known
