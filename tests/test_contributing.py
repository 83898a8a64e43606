"""What CONTRIBUTING says that a new model and a new task take."""

import re
import tomllib
from pathlib import Path

import pytest

from foveate.models import FAMILIES
from foveate.tasks import TASKS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "foveate"


def files(section: str) -> list[Path]:
    """The files that a section lists."""
    steps = TEXT.split(f"## {section}\n")[1].split("\n## ")[0]
    return [ROOT / name for name in re.findall(r"^\d\. `(src/[^`]+)`", steps, re.MULTILINE)]


@pytest.mark.parametrize(
    ("section", "name", "count"), [("Add a model", "convnext", 5), ("Add a task", "classify_image", 2)]
)
def test_the_files_that_are_named_are_all_that_know_it(section: str, name: str, count: int) -> None:
    """A reader of new files need not know which task it is for. Comparisons of models are no part of any."""
    named = files(section)
    assert len(named) == count
    assert all(path.is_file() for path in named)
    module = re.compile(rf"\b{name}\b(?!-)")  # of presets such as resnet-light, only the name is known elsewhere
    knowing = {path for path in SOURCE.rglob("*.py") if module.search(path.read_text(encoding="utf-8"))}
    knowing = {path for path in knowing if "experiments" not in path.parts}
    readers = {path for path in named if "data" in path.parts}
    assert knowing | {named[0]} == set(named) - readers


def test_each_is_one_row() -> None:
    assert [row.module for row in FAMILIES.values()].count("foveate.models.vision.resnet") == 1
    assert [row.module for row in TASKS.values()].count("foveate.tasks.classify_image") == 1


MACHINERY = ("task", "recipe", "skill", "learning", "loading", "checkpoint", "evaluation", "run_config")
"""Modules of `tasks` that serve every task."""


@pytest.mark.parametrize("page", [SOURCE / "tasks" / f"{row.module.rpartition('.')[2]}.py" for row in TASKS.values()])
def test_a_task_is_a_short_value_that_nothing_below_it_knows(page: Path) -> None:
    value = page.read_text(encoding="utf-8").split("\nTASK = Task(")[1].split("\n)\n")[0]
    assert len(value.splitlines()) <= 40
    machinery = [SOURCE / "tasks" / f"{name}.py" for name in MACHINERY]
    others = [
        path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ("tasks", "experiments")
    ]
    knowing = [path for path in (*machinery, *others) if f"tasks.{page.stem} " in path.read_text(encoding="utf-8")]
    assert not knowing


def test_the_version_is_the_same_everywhere() -> None:
    """In the package, the newest section of the changelog (beside what is not released), and the citation file."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    assert released[0][0] == said
    assert released == sorted(released, key=lambda one: one[1], reverse=True)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {said}\n" in citation
    assert f'\ndate-released: "{released[0][1]}"\n' in citation
