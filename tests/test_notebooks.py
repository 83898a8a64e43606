"""The notebooks run from the first cell to the last, with trainings of a few steps, and hold what their cells show."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from notebook_outputs import digest

sys.path.append(str(Path(__file__).parent / "tasks"))

import tiny_bert
import tiny_folders
import whisper_folders

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))

assert len(NOTEBOOKS) >= 7

WITHOUT_PICTURES = ("exercises",)
"""Notebooks of numbers alone."""

CHEAP = ("exercises", "look-into-any-model")
"""Notebooks that train nothing, whose text is the same on every machine but for rounding."""

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def code(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """Those of the cells stay open, and matplotlib warns of many."""
    yield
    plt.close("all")


@pytest.fixture(scope="module", autouse=True)
def small_models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Folders and a sound that stand for packaged weights and recordings, which are fetched."""
    root = tmp_path_factory.mktemp("models")
    bert, whisper, sound = root / "bert", root / "whisper", root / "tone.wav"
    bert.mkdir()
    whisper.mkdir()
    sound.write_bytes(tiny_folders.sound().data)
    folders = {
        "smollm2": tiny_folders.make("llama", root),
        "whisper-tiny.en": whisper_folders.write_model(whisper, multilingual=False),
        "minilm": tiny_bert.write_folder(bert),
    }
    SMALL.update({rf'^MODEL = "{name}"': f"MODEL = {str(folder)!r}" for name, folder in folders.items()})
    SMALL[r"^SOUNDS = \[\]"] = f"SOUNDS = [{str(sound)!r}]"


SMALL = {
    r"^STEPS = \d+": "STEPS = 4",
    r"^TEXTS, WORDS = \d+, \d+": "TEXTS, WORDS = 2, 12",
    r"for pair in PAIRS\b": "for pair in PAIRS[:3]",
}
"""What makes a notebook quick, and lets it run without fetching."""


def few_steps(source: str) -> str:
    for pattern, small in SMALL.items():
        source = re.sub(pattern, small, source, flags=re.MULTILINE)
    return source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(code(path), 1):
        exec(compile(few_steps(cell), f"{path.name}, code cell {number}", "exec"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_installs_foveate_where_it_is_missing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("subprocess.run", lambda command, check: asked.append(command))
    exec(compile(code(path)[0], path.name, "exec"), {})
    assert not asked
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(compile(code(path)[0], path.name, "exec"), {})
    assert [command[:4] for command in asked] == [[sys.executable, "-m", "pip", "install"]]
    assert asked[0][-1].startswith("foveate")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_the_code(path: Path) -> None:
    """`python tests/notebook_outputs.py NAME` stores them again."""
    notebook = read(path)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert notebook["metadata"]["foveate"]["outputs_of"] == digest(notebook["cells"]), "run tests/notebook_outputs.py"
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert outputs
    assert bool(pictures) == (path.stem not in WITHOUT_PICTURES)
    assert not [output for output in outputs if output["output_type"] == "error"]


@pytest.mark.parametrize("name", CHEAP)
def test_stored_text_is_what_the_code_prints_now(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = (one for one in NOTEBOOKS if one.stem == name)
    outputs = (output for cell in read(path)["cells"] for output in cell.get("outputs", ()))
    stored = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    printed = run_cells(code(path), capsys)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", stored)
    numbers, before = ([float(one) for one in NUMBER.findall(text)] for text in (printed, stored))
    assert numbers == pytest.approx(before, rel=0.02, abs=0.02)


EXERCISES = next(path for path in NOTEBOOKS if path.stem == "exercises")


def tagged(path: Path) -> list[tuple[str, str]]:
    """The kind of each cell ("exercise", "check", "code", "solution" or ""), and its source."""
    found = []
    for cell in read(path)["cells"]:
        source = "".join(cell["source"])
        solution = re.search(r"<summary>Solution</summary>\n\n```python\n(.*?)```", source, re.DOTALL)
        kind = "solution" if solution else next(iter(cell["metadata"].get("tags", ())), cell["cell_type"])
        found.append((kind, solution[1] if solution else source))
    return found


def run_cells(sources: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    names: dict[str, object] = {"__name__": "__main__"}
    capsys.readouterr()
    for source in sources:
        exec(few_steps(source), names)
    return capsys.readouterr().out


OF_EXERCISES = ("attention-over-a-picture", "heads-that-copy", "heads-that-rest", "where-a-word-is-heard")
"""Notebooks with four exercises."""


@pytest.mark.parametrize(("name", "count"), [("exercises", 9), *dict.fromkeys(OF_EXERCISES, 4).items()])
def test_exercises_are_to_do_until_they_are_solved(
    name: str, count: int, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a blank, a check that tells both apart, and a solution that is right."""
    monkeypatch.chdir(tmp_path)
    cells = tagged(next(path for path in NOTEBOOKS if path.stem == name))
    kinds = [kind for kind, _ in cells if kind not in ("markdown", "code")]
    assert kinds == ["exercise", "check", "solution"] * count
    blank = run_cells([source for kind, source in cells if kind in USED], capsys)
    assert blank.count("still to do") == count
    solutions = iter([source for kind, source in cells if kind == "solution"])
    solved = [next(solutions) if kind == "exercise" else source for kind, source in cells if kind in USED]
    out = run_cells(solved, capsys)
    assert out.count(": right\n") == count
    assert f"{count} of {count} solved" in out


USED = ("code", "exercise", "check")
"""Cells that are run."""


def test_a_wrong_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    cells = [(kind, source) for kind, source in tagged(EXERCISES) if kind in USED]
    first = [kind for kind, _ in cells].index("exercise")
    before, (exercise, check) = (
        [source for _, source in cells[:first]],
        [source for _, source in cells[first : first + 2]],
    )
    wrong = exercise.replace("output = ...", "output = torch.zeros(2)")
    assert "1: not yet: divide" in run_cells([*before, wrong, check], capsys)


def test_each_notebook_is_a_page_of_the_site() -> None:
    pytest.importorskip("mkdocs")
    sys.path.append(str(NOTEBOOKS[0].parent))
    from pages import page

    found = page(
        {
            "cells": [
                {"cell_type": "markdown", "source": ["# Title\n", "\n", "Why? Because."]},
                {
                    "cell_type": "code",
                    "source": ["print(1)"],
                    "outputs": [
                        {"output_type": "stream", "text": "1\n"},
                        {"output_type": "display_data", "data": {"text/plain": "two"}},
                        {"output_type": "display_data", "data": {"image/png": "iVBOR\n", "text/plain": "<Figure>"}},
                    ],
                },
            ]
        },
        "a.ipynb",
    )
    assert found.startswith("# Title\n\n*This page is the notebook `docs/notebooks/a.ipynb`")
    assert (
        "````python\nprint(1)\n````\n\n````text\n1\ntwo\n````\n\n![What the cell draws](data:image/png;base64,iVBOR)"
        in found
    )
    assert "<Figure>" not in found


@pytest.mark.parametrize(
    ("name", "counts"),
    [("heads-that-copy", [1, 4, 16]), ("where-a-word-is-heard", [2, 4, 8]), ("heads-that-rest", [1, 2, 4, 8, 12])],
)
def test_named_heads_differ_from_heads_by_chance(name: str, counts: list[int]) -> None:
    """What the stored outputs say of the real models: copying and hearing need the named heads more than any draw of
    as many, and vectors move less without those that rest."""
    (path,) = (one for one in NOTEBOOKS if one.stem == name)
    outputs = (output for cell in read(path)["cells"] for output in cell.get("outputs", ()))
    text = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    rows = re.findall(r"^ +(\d+) \| +(-?[\d.]+) \| (.+)$", text, re.MULTILINE)
    compared = [row for row in rows if int(row[0]) in counts]
    assert [int(count) for count, _, _ in compared] == counts
    whole = re.search(r"none \|\s+(-?[\d.]+)", text)
    for _, named, chance in compared:
        assert float(named) < min(*map(float, chance.split(", ")), *([float(whole[1])] if whole else []))
