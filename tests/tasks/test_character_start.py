"""Beginning from a trained reader of words: its weights, and characters that it has not learned."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate import run_dir
from foveate.errors import UserError
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson
from foveate.tasks.loading import ProcessorOf
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe


def write_table(folder: Path, words: list[str]) -> Path:
    folder.mkdir()
    noise = np.random.default_rng(1)
    for number in range(12):
        image = PIL.Image.fromarray(noise.integers(0, 255, (16, 40), dtype=np.uint8))
        image.save(folder / f"{number}.png")
    lines = [f"{number}.png\t{words[number % len(words)]}\n" for number in range(12)]
    (folder / "labels.tsv").write_text("".join(lines))
    return folder / "labels.tsv"


def recipe(table: Path, out: Path, **others: object) -> Recipe:
    chosen = {"data": str(table), "validation": str(table), "batch": 6, "steps": 1, "threads": 1}
    return make_recipe("read", **chosen, out=out, **others)


def test_weights_and_characters_of_a_run(tmp_path) -> None:
    first = recipe(write_table(tmp_path / "one", ["ab", "cab"]), tmp_path / "run")
    foveate.train(first)
    second = recipe(write_table(tmp_path / "two", ["bd", "é"]), tmp_path / "next", start=str(tmp_path / "run"))
    task = find_task("read")
    lesson = Lesson(task, second)
    lesson.check()
    known = task.start.processor(lesson.plan, ProcessorOf(task))
    assert known.writes.characters == "abc"
    train = lesson.open()[0]
    learned = second.writes.learn(train, second.reads, second.architecture)
    assert learned.extend(known.writes, train).characters == "abcdé"
    model, trained = lesson.build(vocabulary=9), run_dir.load(tmp_path / "run").tensors
    torch.testing.assert_close(model.state_dict()["embedding.weight"][:7], trained["embedding.weight"])
    name = next(name for name, tensor in trained.items() if tensor.dim() == 4)
    torch.testing.assert_close(model.state_dict()[name], trained[name])
    assert foveate.train(second).processor.writes.characters[:3] == "abc"
    assert str(tmp_path / "run") in lesson.contents()


def test_a_run_of_another_task(tmp_path) -> None:
    foveate.train(recipe(write_table(tmp_path / "one", ["ab", "cab"]), tmp_path / "run"))
    with pytest.raises(UserError, match="is a run of read, but transcribe begins from one of its own"):
        foveate.recipe("transcribe", start=tmp_path / "run", out=tmp_path / "x")
