"""N-grams and compressing programs in bits per byte: by hand, on the command line, and what cannot be."""

import bz2
import gzip
import json
import math
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from foveate.cli import main
from foveate.errors import UserError
from foveate.experiments import compare
from foveate.experiments.ngrams import NgramBaselines

QUIET = Console(file=StringIO())
LEARN = "abab abba\n\nabab cab"
TEST = "abba é"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "learn.txt", tmp_path / "test.txt"
    for path, text in zip(paths, (LEARN, TEST), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_unigrams_of_bytes_and_programs_by_hand(files: tuple[Path, Path]) -> None:
    """Bytes of both paragraphs and their ends: a 7, b 7, space 2, c 1, end 2; 258 ids."""
    options = NgramBaselines(data=files[:1], test=files[1:], orders=(1,), vocabulary=30)
    found = {(part["way"], part["order"]): part for part in compare("ngrams", options, QUIET).raw}
    counts = {"a": 7, "b": 7, " ": 2, "c": 1, "end": 2}
    total, discount = sum(counts.values()), 1 / (1 + 2 * 2)
    never = discount * len(counts) / total / 258
    seen = {unit: (count - discount) / total + never for unit, count in counts.items()}
    bits = -sum(math.log2(seen[unit]) for unit in (*"abba ", "end")) - 2 * math.log2(never)  # é is two bytes
    assert found["bytes", 1]["bits_per_byte"] == pytest.approx(bits / 8)
    assert found["bytes", 1]["tokens"] == 8
    text = TEST.encode()
    assert found["gzip", 0]["bits_per_byte"] == 8 * len(gzip.compress(text, 9)) / len(text)
    assert found["bz2", 0]["bits_per_byte"] == 8 * len(bz2.compress(text, 9)) / len(text)


def test_on_the_command_line(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One paragraph of 20 is held out; what repeats is foretold by longer n-grams."""
    text = "\n\n".join(f"the keeper number {number} lit the lamp and climbed the stairs" for number in range(60))
    files[0].write_text(text)
    command = ["bench", "ngrams", "--data", str(files[0]), "--vocabulary", "60", "--orders", "1", "3"]
    main([*command, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "subwords" in printed
    assert "learn.txt" in printed
    table = (tmp_path / "out" / "ngrams.md").read_text()
    assert "| subwords | 3 |" in table
    assert "after counting in learn.txt" in table
    measured = json.loads((tmp_path / "out" / "ngrams.json").read_text())["measured"]
    bits = {(part["way"], part["order"]): part["bits_per_byte"] for part in measured}
    assert bits["bytes", 3] < bits["bytes", 1] / 3
    assert bits["subwords", 3] < bits["subwords", 1] < bits["bytes", 1]
    assert (tmp_path / "out" / "ngrams.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"orders": ()}, "no n-grams to count: give --orders at least one number"),
        ({"orders": (0,)}, "orders is 0, but must be at least 1"),
        ({"source": "prose", "data": True}, "both the source 'prose' and files are given; choose one"),
        ({"test": True}, "--test is for text of your own: give --data too"),
        ({"source": "emojis"}, "unknown source 'emojis'"),
        ({"data": True, "orders": (9,)}, "9-grams of 258 tokens do not fit into 64-bit numbers"),
        ({"data": True, "vocabulary": 5}, "a vocabulary of 5 entries is too small"),
    ],
)
def test_what_cannot_be(options: dict, message: str, files: tuple[Path, Path], tmp_path: Path) -> None:
    given = {name: value for name, value in options.items() if value is not True}
    if options.get("data"):
        given |= {"data": files[:1], "test": files[1:]}
    if options.get("test"):
        given["test"] = files[1:]
    with pytest.raises(UserError, match=message):
        compare("ngrams", NgramBaselines(out=tmp_path / "out", **given), QUIET)


def test_a_text_without_text(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[1].write_text("\n")
    with pytest.raises(UserError, match=r"test.txt: there is no text in it"):
        compare("ngrams", NgramBaselines(out=tmp_path / "out", data=files[:1], test=files[1:]), QUIET)
