"""Trainings on text that is not kept in memory: the same batches and weights, and whole documents held out."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tiny_prose
import torch
from rich.console import Console

from foveate.data.text import spooled_passages, token_shards
from foveate.data.tokens import word_counts
from foveate.tasks.cloze import Cloze, ClozeText
from foveate.tasks.examples import prose_text
from foveate.tasks.examples.prose_text import LanguageText
from foveate.tasks.language import Language


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def on_disk(monkeypatch: pytest.MonkeyPatch, shard: int = 300) -> None:
    monkeypatch.setattr(token_shards, "IN_MEMORY", 0)
    monkeypatch.setattr(token_shards, "SHARD", shard)
    monkeypatch.setattr(spooled_passages, "IN_MEMORY", 0)


def language(folder: Path) -> Any:
    text = LanguageText(data=tuple(tiny_prose.write_files(folder)), vocabulary=90, batch_tokens=256, max_length=20)
    return Language(examples=text, model="gpt-tiny", out=folder / "run", training=tiny_prose.training(3))


def conditioned(folder: Path) -> Any:
    text = LanguageText(data=tuple(tiny_prose.write_files(folder)), vocabulary=90, batch_tokens=256)
    return Language(examples=text, model="rnn-conditioned", out=folder / "run", training=tiny_prose.training(3))


def cloze(folder: Path, model: str) -> Any:
    text = ClozeText(data=tuple(tiny_prose.write_files(folder)), vocabulary=90, batch=256, max_length=24)
    return Cloze(examples=text, model=model, out=folder / "run", training=tiny_prose.training(3))


RECIPES = {
    "language": language,
    "conditioned": conditioned,
    "bert": lambda folder: cloze(folder, "bert-tiny"),
    "xlnet": lambda folder: cloze(folder, "xlnet-tiny"),
    "elmo": lambda folder: cloze(folder, "elmo-tiny"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_batches_bit_for_bit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first epoch and, from the third batch on, of the second."""

    def batches() -> tuple[list[Any], str]:
        task = RECIPES[name](tmp_path)
        learn, _ = task.open()
        found = task.batches(learn, task.fit(learn))
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
        return task.learn(console=Console(file=StringIO())).model.state_dict()

    before = weights("memory")
    on_disk(monkeypatch)
    after = weights("disk")
    assert all(torch.equal(after[key], value) for key, value in before.items())


def test_whole_documents_are_held_out(tmp_path: Path) -> None:
    for number in range(45):
        text = "\n\n".join(f"{paragraph.text} Of {number}." for paragraph in tiny_prose.prose(4, number))
        (tmp_path / f"{number:02}.txt").write_text(text, encoding="utf-8")
    for task in (
        Language(examples=LanguageText(data=(tmp_path,)), out=tmp_path / "run"),
        Cloze(examples=ClozeText(data=(tmp_path,)), out=tmp_path / "run"),
    ):
        learn, check = task.open()
        sides = [{passage.document for passage in part} for part in (learn, check)]
        assert not sides[0] & sides[1]
        assert [len(side) for side in sides] == [36, 9]
        assert len(learn) + len(check) > 100


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_vocabulary_is_not_learned_from_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        task, said = RECIPES[name](tmp_path), StringIO()
        task.learn(console=Console(file=said, width=300))
        return said.getvalue()

    assert "the vocabulary" not in told()
    monkeypatch.setattr(word_counts, "MOST", 50)
    monkeypatch.setattr(prose_text, "VOCABULARY_FROM", 60)
    (tmp_path / "run").rename(tmp_path / "before")
    said = told()
    assert said.count("the vocabulary is learned from one passage in ") == 1
    assert said.count("most frequent different words: all of them would have more than 50 characters") == 1
