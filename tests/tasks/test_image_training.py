"""How images are prepared and weights are averaged, of every task on images: a task is tested by being listed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from test_every_image_start import IMAGE_TASKS
from workshop import SILENT, Workshop, smallest

from foveate.forms.form import setting_names
from foveate.tasks import find_task
from foveate.tasks.learning import learn
from foveate.tensor_files import read_tensors

CHANGES = {"augment": True, "crop": 0.3, "cutmix": 1.0, "mixup": 0.2, "repeats": 2, "colour": 0.2}
"""Random changes, of which a task has those that fit its targets."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("images"))


def state(folder: Path, step: int) -> dict[str, torch.Tensor]:
    """All of the checkpoint of a step: weights, their average, the optimizer and the random numbers."""
    return dict(read_tensors(folder / "checkpoints" / f"step-{step:08d}.safetensors").tensors)


@pytest.mark.parametrize("name", IMAGE_TASKS)
def test_workers_and_a_resume_change_no_bit(workshop: Workshop, tmp_path: Path, name: str) -> None:
    """A thread prepares all batches; or other processes do, and the training stops in between and is
    resumed."""
    task = find_task(name)
    model = smallest(task).name
    known = setting_names(type(task.reads))
    settings: dict[str, Any] = {key: value for key, value in CHANGES.items() if key in known} | {
        "ema": 0.9,
        "schedule": "constant",
    }
    settings |= {"validate_every": 3, "save_every": 3, "watch_attention": False}
    learn(workshop.recipe(task, model, tmp_path / "whole", steps=3, **settings), console=SILENT)
    for steps in (2, 3):
        learn(workshop.recipe(task, model, tmp_path / "parts", steps=steps, workers=2, **settings), console=SILENT)
    whole, parts = (state(tmp_path / part, 3) for part in ("whole", "parts"))
    assert any(one.startswith("learned/") for one in whole)
    assert whole.keys() == parts.keys()
    for key, tensor in whole.items():
        assert torch.equal(tensor, parts[key]), key
