"""Every task's run is written for other libraries, or refused in one line that says why."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from test_every_task import Command, Trained, command, workshop
from workshop import SILENT, Workshop

import foveate
from foveate.errors import UserError, one_line
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.skill import Skill

__all__ = ["command", "workshop"]

EXPORTED = {
    **dict.fromkeys(("language", "dpo", "rlhf"), "gpt"),
    "translate": "transformer",
    "classify-image": "vit",
    "detect": "detr",
}
"""The tasks of which the smallest model has a class in transformers, and its family."""


@pytest.fixture(scope="module", params=TASKS)
def trained(request: pytest.FixtureRequest, workshop: Workshop) -> Trained:
    task = find_task(request.param)
    family = EXPORTED.get(task.name, "")
    families = (family,) if family in task.families and not task.start.missing else ()
    return Trained(task, workshop, workshop.run(task, families))


def test_it_is_written_or_says_why(trained: Trained, command: Command) -> None:
    ended = command("export", trained.folder, "--out", "exported")
    if trained.task.name in EXPORTED:
        assert ended.status == 0, ended.err
    if ended.status == 0:
        assert (Path("exported") / "model.safetensors").is_file()
    else:
        assert re.search("transformers|public layout", ended.error)
        assert not Path("exported").exists()


@pytest.mark.parametrize("way", ["hf", "gguf"])
def test_the_training_says_so_before(trained: Trained, way: Any, command: Command, tmp_path: Path) -> None:
    """What cannot be written is refused before the first step, in the same words."""
    ended = command("export", trained.folder, "--out", "exported", "--to", way)
    recipe = trained.workshop.recipe(trained.task, trained.skill.recipe.model, tmp_path / "run", export=(way,))
    if ended.status == 0:
        learn(recipe, console=SILENT)
        names = {"hf": "model.safetensors", "gguf": "model.gguf"}
        assert (tmp_path / "run" / "export" / way / names[way]).is_file()
        return
    with pytest.raises(UserError) as told:
        learn(recipe, console=SILENT)
    assert one_line(str(told.value)) in ended.error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["dpo", "rlhf"])
def test_a_tuned_model_is_a_language_model(name: str, workshop: Workshop, command: Command) -> None:
    """With the same logits."""
    folder = workshop.run(find_task(name))
    assert command("export", folder, "--out", "exported").status == 0
    tokens = torch.randint(4, 20, (2, 9))
    with torch.no_grad():
        found, expected = (foveate.load(one).model(tokens).logits for one in (Path("exported"), folder))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_of_several_processes_the_first_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr("foveate.tasks.export.ways.try_export", lambda skill, way: tried.append(way))
    recipe = find_task("language").recipe(export=("hf", "gguf"))
    for main in (False, True):
        monkeypatch.setattr("foveate.tasks.learning.main_process", lambda main=main: main)
        Lesson(find_task("language"), recipe)._try_exports(Skill.__new__(Skill))
        assert tried == (["hf", "gguf"] if main else [])


def test_several_processes_end_with_one_line(tmp_path: Path) -> None:
    """What cannot be written ends all of them before the first step."""
    (tmp_path / "prose.txt").write_text("\n\n".join(f"It was the {n} of the lamps that lit." for n in range(40)))
    given = ["--data", tmp_path / "prose.txt", "--out", tmp_path / "run", "--steps", 1, "--export", "gguf"]
    sizes = ["--model", "gpt-tiny", "--architecture.width", 16, "--architecture.layers", 1, "--architecture.heads", 2]
    command = [sys.executable, "-m", "foveate", "train", "language", "--processes", 2, *given, *sizes]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 2
    (told,) = [line for line in ended.stderr.splitlines() if line.startswith("foveate: ")]
    assert "GGUF" in told
    assert not (tmp_path / "run").exists()
