"""Run folders of version 0.2 open in this one: one folder of each task that it had."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import foveate
from foveate.run_dir import CONFIG, WEIGHTS
from foveate.tasks.upgrade import UPGRADES

FOLDERS = Path(__file__).parent / "version_0_2"
"""A file for each task, which version 0.2 trained for three steps on made examples: the JSON files of the run folder,
and the types and shapes of its tensors."""


def write_folder(task: str, place: Path) -> dict[str, Any]:
    """Write the folder of a task with random weights; its files by name."""
    saved = json.loads((FOLDERS / f"{task}.json").read_text())
    for name, values in saved["files"].items():
        (place / name).write_text(json.dumps(values))
    tensors = {
        name: torch.randn(shape).abs().mul(0.02).to(getattr(torch, kind))
        for name, (kind, *shape) in saved["tensors"].items()
    }
    save_file(tensors, place / WEIGHTS, saved["metadata"])
    files: dict[str, Any] = saved["files"]
    return files


def numbers_in(values: Any) -> set[Any]:
    """The numbers and texts at any depth of a JSON value."""
    if isinstance(values, dict):
        return set().union({*values}, *map(numbers_in, values.values()))
    if isinstance(values, list):
        return set().union(*map(numbers_in, values))
    return {values}


def test_there_is_a_folder_of_each_task() -> None:
    assert {path.stem for path in FOLDERS.iterdir()} == UPGRADES.keys()


@pytest.mark.parametrize("task", UPGRADES)
def test_a_folder_of_version_0_2(task: str, tmp_path: Path) -> None:
    files = write_folder(task, tmp_path)
    skill = foveate.load(tmp_path)
    assert skill.task.name == task
    before = files[CONFIG]
    for name, value in before["architecture"].items():
        if hasattr(skill.model.config, name) and not isinstance(value, dict | list):
            assert getattr(skill.model.config, name) == value, name
    assert skill.recipe.training.steps == before["recipe"]["training"]["steps"] == 3
    assert [str(path) for path in skill.recipe.examples.data] == before["recipe"]["examples"]["data"]

    # What the old files said that the task had learned is in the new processor.
    skill.save(tmp_path / "again")
    again = (tmp_path / "again" / "processor.json").read_text()
    for name in ("labels", "characters", "words", "sights", "thresholds", "palette", "codec"):
        for values in (files.get("processor.json", {}).get(name), files.get("labels.json", {}).get("counts")):
            assert numbers_in(values) - {None} <= numbers_in(json.loads(again)), name
    assert foveate.load(tmp_path / "again").model.config == skill.model.config
