"""What every task holds out of a user's files to validate on: nothing of it is in training."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import made_examples
import numpy as np
import pytest

from foveate.data.dataset import Dataset
from foveate.data.sounds.wav import write_wave
from foveate.data.text.streamed_text import StreamedText
from foveate.tasks import TASKS, find_task
from foveate.tasks.task import Task


def read(task: Task, folder: Path) -> Dataset[Any]:
    """The examples of a task that are made for it."""
    made = made_examples.examples_of(task, folder)
    return task.read(made.data, task.recipe(data=made.data, **made.settings))


def ties(task: Task, part: Iterable[Any], name: str) -> set[Any]:
    return {task.reads.ties(example).get(name) for example in part} - {None}


@pytest.mark.parametrize("name", TASKS)
def test_copies_are_on_one_side_and_the_last_of_a_kind_is_learned(name: str, tmp_path: Path) -> None:
    task = find_task(name)
    examples = read(task, tmp_path / "made")
    if not isinstance(examples, StreamedText):  # parallel text has a test of its own
        examples = Dataset("twice", [*examples, *examples], examples.unit)
    rest, held = task.hold_out(examples)
    assert len(rest) + len(held) == len(examples)
    if isinstance(examples, StreamedText):
        return
    assert not ties(task, rest, "copy") & ties(task, held, "copy")
    assert "copies of other" in rest.report
    kinds = [{kind for one in part for kind in task.writes.kinds(one)} for part in (rest, held)]
    assert kinds[1] <= kinds[0]


@pytest.mark.parametrize("rare", range(0, 40, 3))
@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("classify", "{label}\ttext {number}"),
        ("pair", "{label}\tfirst {number}\tsecond"),
        ("ask", "text {number}\twhat?\t{label}"),
        ("tag", "word {number}\t{label}\n"),
    ],
)
def test_a_label_that_occurs_once_is_learned(name: str, row: str, rare: int, tmp_path: Path) -> None:
    """Wherever it stands in a file."""
    task, path = find_task(name), tmp_path / "a.tsv"
    labels = ["rare" if number == rare else "ab"[number % 2] for number in range(40)]
    lines = (row.format(label=label, number=number) for number, label in enumerate(labels))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rest, held = task.hold_out(task.read([path], task.recipe(data=path)))
    assert 4 <= len(held) <= 8
    assert "rare" in {kind for one in rest for kind in task.writes.kinds(one)}


def test_answers_that_occur_once_are_held_out_where_all_do(tmp_path: Path) -> None:
    rows = [f"text {number // 2}\twhich of {number % 2}?\tanswer {number}" for number in range(40)]
    (tmp_path / "a.tsv").write_text("\n".join(rows), encoding="utf-8")
    task = find_task("ask")
    rest, held = task.hold_out(task.read([tmp_path / "a.tsv"], task.recipe()))
    assert len(held) == 8
    assert not ties(task, rest, "text") & ties(task, held, "text")


def tasks_of(*makers: Callable[[Path], Any]) -> list[str]:
    """The tasks whose examples these make."""
    tasks = {name: find_task(name) for name in TASKS}
    return [
        name
        for name, one in tasks.items()
        if made_examples.nearest(made_examples.EXAMPLES, one.reads, one.writes) in makers
    ]


PROSE = tasks_of(made_examples.prose, made_examples.prose_with_blanks)
SOUNDS = tasks_of(made_examples.labelled_sounds, made_examples.spoken_texts)


@pytest.mark.parametrize("name", PROSE)
@pytest.mark.parametrize("files", [2, 5, 7])
def test_passages_of_a_file_are_on_one_side(name: str, files: int, tmp_path: Path) -> None:
    """Of two files neither can be held out whole, which a note says."""
    for number in range(files):
        lines = (f"In file {number} the sailor of ship {ship} sings a song for us." for ship in range(30))
        (tmp_path / f"{number}.txt").write_text("\n\n".join(lines), encoding="utf-8")
    task = find_task(name)
    rest, held = task.hold_out(task.read([tmp_path], task.recipe(data=tmp_path)))
    both = ties(task, rest, "document") & ties(task, held, "document")
    assert len(both) == (2 if files == 2 else 0)
    assert held.examples
    note = f"{files} documents, each on one side"
    assert ("2 of 2 documents are on both sides: give --validation" if files == 2 else note) in rest.report


def sounds(folder: Path, name: Callable[[int, int], str]) -> list[tuple[str, int]]:
    """Four sounds of each of six speakers: the name and the speaker of each."""
    found = [(name(speaker, take), speaker) for take in range(4) for speaker in range(6)]
    for number, (file, _) in enumerate(found):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        write_wave(folder / file, np.sin(np.arange(2000) * (number + 9) / 90).astype(np.float32), 8000)
    return found


def check_speakers(task: Task, path: Path) -> None:
    rest, held = task.hold_out(task.read([path], task.recipe(data=path)))
    assert ties(task, [*rest, *held], "speaker") == {str(speaker) for speaker in range(6)}
    assert not ties(task, rest, "speaker") & ties(task, held, "speaker")
    assert len(held) == 4
    assert "6 speakers, each on one side" in rest.report


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
@pytest.mark.parametrize("name", SOUNDS)
def test_sounds_of_a_speaker_that_a_table_names_are_on_one_side(name: str, kind: str, tmp_path: Path) -> None:
    path, found = tmp_path / f"a.{kind}", sounds(tmp_path, lambda speaker, take: f"{speaker} {take}.wav")
    rows = [(str(speaker), file, "ab"[number % 2]) for number, (file, speaker) in enumerate(found)]
    titles = ("client_id", "path", "sentence")  # as in Common Voice
    if kind == "jsonl":
        lines = [json.dumps(dict(zip(titles, row, strict=True))) for row in rows]
    else:
        lines = [{"tsv": "\t", "csv": ","}[kind].join(row) for row in (titles, *rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    check_speakers(find_task(name), path)


@pytest.mark.parametrize("name", [name for name in SOUNDS if name != "classify-sound"])
def test_sounds_of_a_speaker_that_folders_name_are_on_one_side(name: str, tmp_path: Path) -> None:
    """As in LibriSpeech."""
    found = sounds(tmp_path, lambda speaker, take: f"{speaker}/1{take % 2}/{speaker}-1{take % 2}-{take:04}.wav")
    for number, (file, _) in enumerate(found):
        place = tmp_path / file
        with (place.parent / f"{place.stem.rpartition('-')[0]}.trans.txt").open("a") as transcripts:
            transcripts.write(f"{place.stem} {'ab'[number % 2]}\n")
    check_speakers(find_task(name), tmp_path)


def test_words_of_a_speaker_that_files_name_are_on_one_side(tmp_path: Path) -> None:
    """As in Speech Commands."""
    sounds(tmp_path, lambda speaker, take: f"{('yes', 'no')[take % 2]}/{speaker}_nohash_{take}.wav")
    check_speakers(find_task("classify-sound"), tmp_path)


def test_texts_of_a_document_that_a_table_names_are_on_one_side(tmp_path: Path) -> None:
    rows = [f"{number % 8}\ttext {number}\twhat?\t{'ab'[number % 3 % 2]}" for number in range(48)]
    (tmp_path / "a.tsv").write_text("\n".join(["title\tcontext\tquestion\tanswer", *rows]), encoding="utf-8")
    task = find_task("ask")
    rest, held = task.hold_out(task.read([tmp_path / "a.tsv"], task.recipe()))
    assert not ties(task, rest, "document") & ties(task, held, "document")
    assert len(held) in (6, 12)
    assert "8 documents, each on one side" in rest.report


WHOLE = {
    "keypoints": "the points that each object has",
    "segment": "the shares of pixels are read from all masks once",
    "tag": "the number of different tags",
}
"""Tasks with a number that is said of all examples, and which."""


@pytest.mark.parametrize("name", TASKS)
def test_what_is_counted_is_counted_of_each_part(name: str, tmp_path: Path) -> None:
    """A note of numbers is made of the part that it is said of: together both parts have what all have."""
    task = find_task(name)
    whole = read(task, tmp_path / "made")
    if isinstance(whole, StreamedText) or len(whole) < 10:
        return
    fixed = [note for note in whole.notes if isinstance(note, str) and re.match(r"[\d,]+ ", note)]
    assert not fixed or name in WHOLE
    for part in task.hold_out(whole):
        counts = [note for note in part.notes if callable(note)]
        assert [note(part) for note in counts] == [note([*part]) for note in counts]
        assert all(note(part) in part.report for note in counts)


def test_labels_are_counted_of_each_part(tmp_path: Path) -> None:
    task = find_task("classify-image")
    for part in task.hold_out(read(task, tmp_path / "made")):
        shown = re.findall(r"(\d+) (?:red|green|blue)", part.report)
        assert sum(map(int, shown)) == len(part)
