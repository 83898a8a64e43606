"""What is imported to say which models there are, to list the commands, and to create one model."""

import subprocess
import sys

import pytest

from foveate import models
from foveate.tasks import TASKS, find_task

PAGES = [row.module for row in models.FAMILIES.values()]


def imported(program: str) -> set[str]:
    """The modules that a new process has imported after a program."""
    code = f"import sys\n{program}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "program",
    [
        "from foveate import models; models.presets()",
        "from foveate.cli import main; main(['--help'])",
        "from foveate.cli import main; main(['models'])",
    ],
)
def test_listing_imports_no_family_and_no_torch(program: str) -> None:
    assert imported(program).isdisjoint([*PAGES, "torch", "numpy"])


def test_creating_a_preset_imports_its_family_alone() -> None:
    found = imported("import foveate; foveate.create('resnet20', device='meta', classes=3)")
    assert found.intersection(PAGES) == {"foveate.models.vision.resnet"}


def test_rows_and_pages_name_the_same_presets() -> None:
    for family, row in models.FAMILIES.items():
        page = models.family_module(family)
        assert page.PRESETS.keys() == row.presets.keys()
        assert getattr(page, "TRAINING", {}).keys() <= row.presets.keys()
    assert len(models.presets()) == sum(len(row.presets) for row in models.FAMILIES.values())


def test_rows_name_the_heads_of_presets() -> None:
    for name, preset in models.presets().items():
        if preset.head is not None:
            kind = models.config_class(preset.family)
            assert preset.head == preset.values.get("head", kind.head), name
    taggers, classifiers = (models.presets(["rnn-encoder", "bert"], head) for head in ("tokens", "text"))
    assert taggers.keys() - classifiers.keys() == {"rnn-transducer", "birnn-tagger", "deep-birnn-tagger"}
    assert "bert-tiny" in taggers.keys() & classifiers.keys()


def test_tasks_train_families_that_there_are() -> None:
    for task, row in TASKS.items():
        assert set(row.families) <= models.FAMILIES.keys()
        assert (find_task(task).families, find_task(task).head) == (row.families, row.head)
