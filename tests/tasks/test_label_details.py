"""What `foveate eval --details` says of labels, by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import verdicts
from PIL import Image
from workshop import Workshop

import foveate
from foveate.baselines.pixel_probe import labels_by_pixels
from foveate.cli import main
from foveate.forms.label_details import WORST, Decided, MeasureLabels
from foveate.forms.tagged_words import in_brackets
from foveate.metrics.classification import by_class, calibration_error, confusion
from foveate.tasks import TASKS, find_task

FOUND, RIGHT = ["a", "a", "b", "a", "c"], ["a", "b", "b", "a", "a"]


def test_each_class() -> None:
    classes = by_class(FOUND, RIGHT)
    assert [*classes] == ["a", "b"]
    assert (classes["a"].precision, classes["a"].recall, classes["a"].count) == (pytest.approx(200 / 3),) * 2 + (3,)
    assert (classes["b"].precision, classes["b"].recall) == (100, 50)


def test_confusions() -> None:
    assert confusion(FOUND, RIGHT, ["a", "b", "c"]).tolist() == [[2, 0, 1], [1, 1, 0], [0, 0, 0]]


def test_calibration() -> None:
    """Two answers at 0.9 of which one is right, and two at 0.5 of which one is right."""
    assert calibration_error([0.9, 0.9, 0.5, 0.5], [True, False, True, False]) == pytest.approx(20)
    assert calibration_error([1.0, 1.0], [True, True]) == 0


def test_the_most_confident_mistakes_come_first() -> None:
    decided = Decided(FOUND, RIGHT, ["one", "two", "three", "four", "five\tsix"], [0.9, 0.6, 0.8, 0.7, 0.95])
    found = decided.details()
    assert [row["input"] for row in found.figures["worst"]] == ["five\tsix", "two"]
    assert found.tables[-1].rows[0] == ["5", "c", "a", "0.950", "five | six"]


def test_eval(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{label}\t{text}\n" for label, text in verdicts.examples(60, 1)), encoding="utf-8")
    foveate.train(foveate.recipe("classify", data=data, model="rnn-acceptor", steps=3, out=tmp_path / "run"))
    assert "on validation: " in capsys.readouterr().err
    given = ["eval", str(tmp_path / "run"), "--data", str(data), "--details", "--picture", str(tmp_path / "c.png")]
    main([*given, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert sum(map(sum, found["confusions"]["counts"])) == found["texts"]
    assert found["interval"]["low"] <= found["ways"]["rnn-acceptor"][found["interval"]["metric"]]
    assert {*found["classes"]} == {label for label, _ in verdicts.examples(60, 1)}
    main(given)
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("recall", "is, answered as", "95 % interval", "ECE", "drew"))
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


OF_LABELS = [name for name in TASKS if getattr(find_task(name).writes, "eval_options", None) is MeasureLabels]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("labels"))


@pytest.mark.parametrize("name", OF_LABELS)
def test_every_task_of_labels_has_all_details(workshop: Workshop, capsys: pytest.CaptureFixture, name: str) -> None:
    task = find_task(name)
    data = [str(path) for path in workshop.examples(task).data]
    capsys.readouterr()
    main(["eval", str(workshop.run(task)), "--data", *data, "--details", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {"classes", "confusions", "calibration_error", "interval"} <= found.keys()
    total = sum(map(sum, found["confusions"]["counts"]))
    right = sum(row[place] for place, row in enumerate(found["confusions"]["counts"]))
    assert len(found.get("worst", [])) == min(total - right, WORST)
    shares = [row["probability"] for row in found.get("worst", [])]
    assert shares == sorted(shares, reverse=True)
    assert all(row["input"] and row["answered"] != row["is"] for row in found.get("worst", []))


def test_a_word_in_brackets() -> None:
    words = tuple("abcdefghij")
    assert in_brackets(words, 4) == "b c d [e] f g h"
    assert in_brackets(words, 0) == "[a] b c d"
    assert in_brackets(words, 9) == "g h i [j]"


class Labelled:
    """An image in memory."""

    def __init__(self, label: str, level: int) -> None:
        self.label, self.level = label, level

    def read(self) -> Image.Image:
        return Image.fromarray(np.full((20, 20, 3), self.level, np.uint8))


def test_a_linear_classifier_of_pixels_tells_dark_from_bright() -> None:
    known = [Labelled("dark" if level < 100 else "bright", level) for level in (10, 40, 60, 150, 200, 240)]
    asked = [Labelled("", 20), Labelled("", 220)]
    assert labels_by_pixels(asked, known, [(one.label,) for one in known], 3) == [["dark"], ["bright"]]
