"""The bottleneck in small, and what is drawn of it."""

from io import StringIO
from pathlib import Path

import pytest
import words
from rich.console import Console

from foveate import load
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError
from foveate.experiments import compare, save
from foveate.experiments.bottleneck import MODELS, Bottleneck, join_sentences
from foveate.experiments.comparison import Comparison


def test_neighbours_are_joined() -> None:
    """Every sentence is there once, in order; from one to three of them make a line."""
    text = ParallelText.from_pairs([(f"a{number}", f"b{number}") for number in range(50)], "fifty")
    found = list(join_sentences(text, 3, 1, " / "))
    assert " / ".join(source for source, _ in found).split(" / ") == [source for source, _ in text]
    assert {len(source.split(" / ")) for source, _ in found} == {1, 2, 3}
    assert all(target == source.replace("a", "b") for source, target in found)
    assert found == list(join_sentences(text, 3, 1, " / ")) != list(join_sentences(text, 3, 2, " / "))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    folder = tmp_path_factory.mktemp("bench")
    sizes = {"steps": 2, "width": 8, "vocabulary": 60, "groups": 3, "repeats": 1}
    options = Bottleneck(folder, lengths=(8, 16, 32), longest_written=16, **sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "foveate.experiments.bottleneck.open_source",
            lambda *_: Splits(*map(words.messages, (40, 10, 20), (1, 2, 3))),
        )
        found = compare("bottleneck", options, Console(file=StringIO()))
    save(found, "bottleneck", options)
    return folder, found


def test_tables_of_quality_and_time(ran: tuple[Path, Comparison]) -> None:
    quality, reading, writing = ran[1].tables
    assert quality.headings == ["words in the source", "sentences", *MODELS]
    assert sum(int(row[1]) for row in quality.rows) == sum(1 for _ in join_sentences(words.messages(20, 3), 2, 1, ", "))
    assert [row[0] for row in reading.rows] == ["8", "16", "32", "grows, last 3"]
    assert [row[0] for row in writing.rows] == ["8", "16", "grows, last 2"]
    assert (ran[0] / "bottleneck.png").stat().st_size > 1000


def test_only_what_is_named_so_attends(ran: tuple[Path, Comparison]) -> None:
    attends = {}
    for folder in (ran[0] / "bottleneck").iterdir():
        translator = load(folder)
        attends[folder.name] = translator.alignment("red cat", "chat rouge") is not None
    plain = [("rnn", False), ("rnn-vector-at-every-step", False)]
    assert sorted(attends.items()) == [*plain, ("rnn-with-attention", True), ("transformer", True)]


@pytest.mark.parametrize("tested", [False, True], ids=["a part held out", "text to measure on"])
def test_text_of_ones_own(tested: bool, tmp_path: Path) -> None:
    """Each sentence is once in one part only; sentences are join_sentences by a space."""
    pairs = [(f"{number} red cats", f"{number} chats rouges") for number in range(500)]
    for name, some in (("train", pairs[:440]), ("test", pairs[440:])):
        lines = "".join(f"{source}\t{target}\n" for source, target in some)
        (tmp_path / f"{name}.tsv").write_text(lines, encoding="utf-8")
    sizes = {"steps": 1, "width": 8, "vocabulary": 60, "groups": 2, "repeats": 1, "lengths": (4, 8)}
    options = Bottleneck(
        tmp_path, data=(tmp_path / "train.tsv",), test=(tmp_path / "test.tsv",) if tested else (), **sizes
    )
    found = compare("bottleneck", options, Console(file=StringIO()))
    assert found.title == "The bottleneck: train.tsv, joined"
    sentences = sum(int(row[1]) for row in found.tables[0].rows)
    assert 60 / 2 <= sentences <= 60 if tested else sentences <= 440 / 5
    assert found.tables[0].rows[-1][0] == "6-6"  # words of two sentences
    again = compare("bottleneck", options, Console(file=StringIO()))
    assert again.tables[0].rows == found.tables[0].rows
    options.data = (tmp_path / "test.tsv",)
    with pytest.raises(UserError, match="was started with data"):
        compare("bottleneck", options, Console(file=StringIO()))


def test_text_to_measure_on_alone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--test needs --data"):
        compare("bottleneck", Bottleneck(tmp_path, test=(tmp_path / "test.tsv",)), Console(file=StringIO()))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"lengths": (0, 8)}, "lengths is 0, but must be at least 1"),
        ({"lengths": (8, 16, 32), "longest_written": 8}, "up to longest_written is 1, but must be at least 2"),
    ],
)
def test_lengths_that_cannot_be(options: dict, error: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=error):
        compare("bottleneck", Bottleneck(tmp_path, **options), Console(file=StringIO()))
