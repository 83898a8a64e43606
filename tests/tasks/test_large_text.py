"""Trainings on text that is not kept in memory: the same batches and weights, and whole documents held out."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tiny_prose
import torch
from rich.console import Console

from foveate.data.buckets import BucketedBatches
from foveate.data.text import spooled_passages, token_shards
from foveate.data.tokens import word_counts
from foveate.forms import prose
from foveate.forms.processor import Processor
from foveate.tasks.cloze import TASK as CLOZE
from foveate.tasks.language import TASK as LANGUAGE
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.task import Task, open_examples


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def on_disk(monkeypatch: pytest.MonkeyPatch, shard: int = 300) -> None:
    monkeypatch.setattr(token_shards, "IN_MEMORY", 0)
    monkeypatch.setattr(token_shards, "SHARD", shard)
    monkeypatch.setattr(spooled_passages, "IN_MEMORY", 0)


def recipe(task: Task, folder: Path, **settings: Any) -> Recipe:
    files = tiny_prose.write_files(folder)
    return task.recipe(
        data=files, vocabulary=90, batch=256, out=folder / "run", steps=3, **tiny_prose.SETTINGS, **settings
    )


RECIPES: dict[str, tuple[Task, dict[str, Any]]] = {
    "language": (LANGUAGE, {"model": "gpt-tiny", "max_length": 20}),
    "conditioned": (LANGUAGE, {"model": "rnn-conditioned"}),
    "bert": (CLOZE, {"model": "bert-tiny", "max_length": 24}),
    "xlnet": (CLOZE, {"model": "xlnet-tiny", "max_length": 24}),
    "elmo": (CLOZE, {"model": "elmo-tiny", "max_length": 24}),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_batches_bit_for_bit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first epoch and, from the third batch on, of the second."""

    def batches() -> tuple[list[Any], str]:
        task, settings = RECIPES[name]
        chosen = recipe(task, tmp_path, **settings)
        train, _ = open_examples(task, chosen)
        reads = chosen.reads.learn(train, chosen.architecture)
        processor = Processor(reads, chosen.writes.learn(train, reads, chosen.architecture))
        found = BucketedBatches(reads.buckets(train, processor), 256, 1)
        return [*found.epoch(0), *found.epoch(1, skip=2)], found.report

    before, report = batches()
    on_disk(monkeypatch)
    for _ in range(2):  # written, then read
        after, again = batches()
        assert again == report
        assert len(before) == len(after) > 3
        for one, other in zip(before, after, strict=True):
            assert one.source == other.source
            assert one.inputs.keys() == other.inputs.keys()
            for given, expected in ((other.inputs, one.inputs), (other.targets, one.targets)):
                assert all(torch.equal(given[key], value) for key, value in expected.items())


def test_a_training_on_mapped_files_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def weights(place: str) -> dict[str, torch.Tensor]:
        task = tiny_prose.language(tmp_path / place, 3, "rnn-language", data=tuple(tiny_prose.write_files(tmp_path)))
        return learn(task, console=Console(file=StringIO())).model.state_dict()

    before = weights("memory")
    on_disk(monkeypatch)
    after = weights("disk")
    assert all(torch.equal(after[key], value) for key, value in before.items())


def test_whole_documents_are_held_out(tmp_path: Path) -> None:
    for number in range(45):
        text = "\n\n".join(f"{paragraph.text} Of {number}." for paragraph in tiny_prose.prose(4, number))
        (tmp_path / f"{number:02}.txt").write_text(text, encoding="utf-8")
    for task in (LANGUAGE, CLOZE):
        train, check = open_examples(task, task.recipe(data=tmp_path, out=tmp_path / "run"))
        sides = [{passage.document for passage in part} for part in (train, check)]
        assert not sides[0] & sides[1]
        assert [len(side) for side in sides] == [36, 9]
        assert len(train) + len(check) > 100


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_vocabulary_is_not_learned_from_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        (task, settings), said = RECIPES[name], StringIO()
        learn(recipe(task, tmp_path, **settings), console=Console(file=said, width=300))
        return said.getvalue()

    assert "the vocabulary" not in told()
    monkeypatch.setattr(word_counts, "MOST", 50)
    monkeypatch.setattr(prose, "VOCABULARY_FROM", 60)
    (tmp_path / "run").rename(tmp_path / "before")
    said = told()
    assert said.count("the vocabulary is learned from one passage in ") == 1
    assert said.count("most frequent different words: all of them would have more than 50 characters") == 1
