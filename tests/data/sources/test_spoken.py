"""Sentences spoken by a program: what is said, and what becomes of its files."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from foveate.data.sources import open_source, spoken
from foveate.data.sources.sentences import number_words, random_sentence
from foveate.errors import UserError

PROGRAM = f"""#!{sys.executable}
import math, struct, sys, wave
with wave.open(sys.argv[sys.argv.index("-w") + 1], "wb") as file:
    file.setparams((1, 2, 22050, 0, "NONE", ""))
    file.writeframes(b"".join(struct.pack("<h", round(9000 * math.sin(n / 9))) for n in range(4410)))
"""
"""Stands for espeak-ng: 0.2 s of a tone of 390 Hz, whatever is said."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "bin" / "espeak-ng"
    place.parent.mkdir()
    place.write_text(PROGRAM)
    place.chmod(0o755)
    monkeypatch.setenv("PATH", str(place.parent))
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(spoken, "COUNTS", {"train": 5, "dev": 2, "test": 3})


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety nine"),
        (700, "seven hundred"),
        (105, "one hundred and five"),
        (2005, "two thousand and five"),
        (9120, "nine thousand one hundred and twenty"),
    ],
)
def test_numbers(number: int, words: str) -> None:
    assert number_words(number) == words


def test_sentences() -> None:
    draw = random.Random(3)
    found = {random_sentence(draw) for _ in range(200)}
    assert len(found) > 180
    assert len({word for text in found for word in text.split()}) < 130
    assert all(text == text.lower() and text.replace(" ", "").isalpha() for text in found)


def test_sentences_and_test_voices_are_in_one_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "COUNTS", {"train": 300, "dev": 30, "test": 70})
    parts = spoken.utterances()
    texts = [one.text for part in parts.values() for one in part]
    assert len(set(texts)) == len(texts) == 400
    voices = [{one.variant for one in part} for part in parts.values()]
    assert not voices[0] & voices[1] | voices[0] & voices[2] | voices[1] & voices[2]
    assert parts == spoken.utterances()


def test_the_three_parts(program: None) -> None:
    splits = open_source("spoken", task="transcribe")
    assert [len(part) for part in (splits.train, splits.dev, splits.test)] == [5, 2, 3]
    first = splits.train[0]
    assert first.label == spoken.utterances()["train"][0].text
    sound = first.read()
    assert (sound.rate, sound.seconds) == (8000, 0.2)
    assert abs(sound.samples).max() == pytest.approx(9000 / 32768, rel=0.05)
    assert np.abs(np.fft.rfft(sound.samples)).argmax() == 78  # 390 Hz, in steps of 5


def test_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^spoken is made by the program espeak-ng, which this machine lacks: apt-get"):
        open_source("spoken", task="transcribe")
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
