"""Folders that people have: hidden files, what programs leave behind, splits, transcripts beside sounds."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foveate.data.folders import IMAGE_FOLDERS, SOUND_FOLDERS, class_folders, files_below, split_folders
from foveate.data.images.captions import captioned_images
from foveate.data.images.labelled import labelled_images
from foveate.data.images.questions import image_questions
from foveate.data.layout import TABLES, part_to_measure, parts_to_learn
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.wav import write_wave
from foveate.errors import UserError


def image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("L", (4, 4)).save(path)


def sound(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_wave(path, np.sin(np.arange(800) / 9).astype(np.float32), 8000)


@pytest.mark.parametrize(("make", "ending"), [(image, "png"), (sound, "wav")])
def test_litter_is_no_class_and_no_example(make, ending: str, tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        for number in range(3):
            make(tmp_path / label / f"{number}.{ending}")
        make(tmp_path / label / ".ipynb_checkpoints" / f"1-checkpoint.{ending}")
        (tmp_path / "__MACOSX" / label).mkdir(parents=True)
        for place in (tmp_path / "__MACOSX" / label, tmp_path / label):
            (place / f"._1.{ending}").write_bytes(b"\0\5\x16\7Mac OS X")
    (tmp_path / ".DS_Store").write_bytes(b"\0")
    (tmp_path / "cat" / "Thumbs.db").write_bytes(b"\xd0")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cat" / "again").symlink_to(tmp_path / "cat")
    read = labelled_images if ending == "png" else labelled_sounds
    assert [one.label for one in read([tmp_path])] == ["cat"] * 3 + ["dog"] * 3
    assert [label for label, _ in class_folders(tmp_path, [ending])] == ["cat", "dog"]
    assert len(files_below(tmp_path, [ending.upper().lower()])) == 6


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("train", "val", "test"), ("train", "val", "test")),
        (("Training", "Validation"), ("Training", "Validation", None)),
        (("train", "test", ".git"), ("train", None, "test")),
        (("train",), None),
        (("train", "val", "cats"), None),
        (("val", "test"), None),
    ],
)
def test_folders_of_splits(names: tuple[str, ...], expected: tuple[str | None, ...] | None, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    found = split_folders(tmp_path)
    assert (found and tuple(place and place.name for place in found)) == expected


def test_what_is_learned_validated_and_measured_of_splits(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        (tmp_path / name).mkdir()
    train, valid, test = (tmp_path / name for name in ("train", "valid", "test"))
    assert parts_to_learn([tmp_path], []) == ((train,), (valid,))
    assert parts_to_learn([tmp_path], [test]) == ((train,), (test,))
    assert part_to_measure([tmp_path]) == (test,)
    assert parts_to_learn([train], []) == ((train,), ())
    assert parts_to_learn([tmp_path, train], []) == ((tmp_path, train), ())
    test.rmdir()
    assert part_to_measure([tmp_path]) == (valid,)


def test_a_folder_with_nothing_to_train_on_is_measured_on(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("label,text\na,b\n")
    assert part_to_measure([tmp_path], (TABLES,)) == (tmp_path / "test.csv",)
    with pytest.raises(UserError, match="split tables without a part to train on"):
        parts_to_learn([tmp_path], [], (TABLES,))


def test_folders_that_may_be_splits_or_classes(tmp_path: Path) -> None:
    for name in ("train", "test"):
        image(tmp_path / name / "1.png")
    with pytest.raises(UserError, match=r"has the folders test, train: if they are splits, name one of them, such as"):
        labelled_images([tmp_path])


def test_transcripts_of_librispeech(tmp_path: Path) -> None:
    for speaker, chapter in ((19, 198), (26, 495)):
        for number in range(2):
            sound(tmp_path / f"{speaker}/{chapter}/{speaker}-{chapter}-000{number}.wav")
        lines = [f"{speaker}-{chapter}-000{number} WORDS OF {speaker} {number}\n" for number in range(2)]
        (tmp_path / f"{speaker}/{chapter}/{speaker}-{chapter}.trans.txt").write_text("".join(lines))
    found = labelled_sounds([tmp_path], spoken=True)
    assert [one.label for one in found] == [f"WORDS OF {n} {m}" for n in (19, 26) for m in (0, 1)]
    assert [one.label for one in labelled_sounds([tmp_path])] == ["19", "19", "26", "26"]


@pytest.mark.parametrize("ending", [".txt", ".lab"])
def test_a_transcript_beside_each_sound(ending: str, tmp_path: Path) -> None:
    for number in range(2):
        sound(tmp_path / f"{number}.wav")
        (tmp_path / f"{number}{ending}").write_text(f"words\nof {number}\n")
    assert [one.label for one in labelled_sounds([tmp_path], spoken=True)] == ["words of 0", "words of 1"]
    sound(tmp_path / "2.wav")
    with pytest.raises(UserError, match=r"2.wav has no transcript, but 2 sounds of .* have one beside them"):
        labelled_sounds([tmp_path], spoken=True)


def test_a_folder_for_each_text_without_transcripts(tmp_path: Path) -> None:
    sound(tmp_path / "zwei/1.wav")
    (tmp_path / "readme.txt").write_text("no transcript")
    assert [one.label for one in labelled_sounds([tmp_path], spoken=True)] == ["zwei"]


IMAGE_READERS = {
    "label": (labelled_images, "image,label\na.png,cat\n"),
    "captions": (captioned_images, "image,caption\na.png,a cat\n"),
    "questions": (image_questions, "image,question,answer\na.png,what?,cat\n"),
}


@pytest.mark.parametrize("folder", ["", *IMAGE_FOLDERS])
@pytest.mark.parametrize("kind", IMAGE_READERS)
def test_images_of_a_table_are_beside_it_or_in_a_folder_of_images(kind: str, folder: str, tmp_path: Path) -> None:
    read, text = IMAGE_READERS[kind]
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(UserError, match=r"there is no file .*a\.png"):
        read([tmp_path / "table.csv"])
    image(tmp_path / folder / "a.png")
    assert [one.read().size for one in read([tmp_path / "table.csv"])] == [(4, 4)]
    (tmp_path / "table.csv").write_text(text.replace("a.png", "../a.png"))
    image(tmp_path.parent / "a.png")
    with pytest.raises(UserError, match=r"outside the folder|there is no file"):
        read([tmp_path / "table.csv"])


@pytest.mark.parametrize("folder", ["", *SOUND_FOLDERS])
def test_sounds_of_a_table_are_beside_it_or_in_a_folder_of_sounds(folder: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("sound,label\na.wav,cat\n")
    sound(tmp_path / folder / "a.wav")
    assert [one.label for one in labelled_sounds([tmp_path / "table.csv"])] == ["cat"]
