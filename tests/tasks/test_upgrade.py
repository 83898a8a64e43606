"""What run folders of earlier versions say of their data, in the forms of this one."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveate.forms.processor import load_processor
from foveate.tasks import find_task
from foveate.tasks.upgrade import upgrade_processor

CHANGES = {"augment": True, "move": 0.125, "colour": 0.0, "erase": 0.0, "operations": 0, "magnitude": 9.0, "mixup": 0.0}
FORMAT = {"size": 28, "channels": 1}

WRITTEN: dict[str, dict[str, Any]] = {
    "classify-image": {**CHANGES, "format": FORMAT, "labels": {"Bag": 5485, "Coat": 5473}},
    "classify-sound": {
        "log_mel": {"rate": 8000, "bands": 40, "window": 0.025, "step": 0.01},
        "frames": 96,
        "labels": {"a": 15, "b": 15},
        "augment": True,
    },
}
"""The processor.json of each task that version 0.2 wrote, beside a config.json with an architecture."""


@pytest.mark.parametrize("name", WRITTEN)
def test_a_folder_of_version_0_2(name: str, tmp_path: Path) -> None:
    (tmp_path / "processor.json").write_text(json.dumps(WRITTEN[name]))
    (tmp_path / "config.json").write_text(json.dumps({"task": name, "architecture": {"classes": 2, "max_length": 9}}))
    task = find_task(name)
    found = load_processor(type(task.reads), type(task.writes), tmp_path, lambda place: upgrade_processor(name, place))
    assert found.writes.labels == WRITTEN[name]["labels"]
    assert found.reads.augment
    assert found.sizes()["classes"] == 2
