"""The demo in a reduced form: three small models, a moment of training each, on a language of eleven words."""

from io import StringIO
from pathlib import Path

import pytest
import words
from rich.console import Console

import foveate
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.tasks.demo import MODELS, Demo, demo

SMALL = {
    "rnn": ("RNN", words.SIZES, 1e-2),
    "rnn-attentive": ("RNN + attention", words.SIZES, 1e-2),
    "transformer-tiny": ("Transformer", {"width": 32, "heads": 2, "decoder_layers": 2}, 1e-2),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demo, and what it told."""
    folder, told = tmp_path_factory.mktemp("demo"), StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foveate.tasks.demo.MODELS", SMALL)
        patch.setattr(
            "foveate.tasks.demo.open_source", lambda *_: Splits(*map(words.messages, (300, 20, 40), (1, 2, 3)))
        )
        demo(Demo(steps=2, out=folder), Console(file=told, width=120))
    return folder, told.getvalue()


def test_the_demo_trains_what_can_be_used_afterwards(ran: tuple[Path, str]) -> None:
    folder, told = ran
    assert [name for name in MODELS if (folder / name / "config.json").is_file()] == list(MODELS)
    loaded = foveate.load(folder / "transformer-tiny")
    assert loaded.description["recipe"]["examples"]["source"] == "emoji"
    assert isinstance(loaded.run("red, cat").text, str)
    message = next(iter(words.messages(40, 3)))[0]
    last = folder / "transformer-tiny"
    assert told.splitlines()[-2:] == [
        f"now try: foveate run {last} '{message}'",
        f"         foveate look {last} '{message}'",
    ]


def test_the_demo_compares_the_three(ran: tuple[Path, str]) -> None:
    """A row for each number of names, then all, then the long ones; the margins agree with the table."""
    _, told = ran
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in told.splitlines() if line.startswith("│")]
    assert [row[0] for row in table] == ["1", "2", "3", "4", "all", "4 and more"]
    assert all(len(row) == 4 and all(" / " in cell for cell in row[1:]) for row in table)
    assert table[3] == ["4", *table[5][1:]]
    plain, *attentive = (float(cell.split(" / ")[0]) for cell in table[5][1:])
    for title, bleu in zip(("RNN + attention", "Transformer"), attentive, strict=True):
        (line,) = (line for line in told.splitlines() if line.startswith(f"{title}: "))
        assert line.endswith(" BLEU against RNN on messages of 4 and more names")
        assert float(line.split(": ")[1].split()[0]) == pytest.approx(bleu - plain, abs=0.11)
    assert "BLEU|nrefs:1|case:mixed" in told
    assert "chrF|nrefs:1|case:mixed" in told


def test_the_demo_translates_messages_of_growing_length(ran: tuple[Path, str]) -> None:
    _, told = ran
    lines = told.splitlines()
    test = dict(words.messages(40, 3))
    shown = [
        (place, source) for place, line in enumerate(lines) for source in [line.partition("  ")[2]] if source in test
    ]
    assert [source.count(",") for _, source in shown] == sorted(source.count(",") for _, source in shown)
    assert len(shown) == 4
    for place, source in shown:
        assert lines[place].split("  ")[0] == " ".join(words.SIGNS[word] for word in source.split(", "))
        said = [line.split()[0] for line in lines[place + 1 : place + 5]]
        assert said == ["RNN", "RNN", "Transformer", "people"]
        assert lines[place + 4].endswith(test[source])


def test_the_demo_draws_the_two_that_attend(ran: tuple[Path, str]) -> None:
    folder, told = ran
    pictures = sorted(folder.glob("*.png"))
    assert [path.name for path in pictures] == ["alignment-1.png", "alignment-2.png"]
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"drew {path}" in told.splitlines()


def test_the_demo_refuses_no_time(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="steps is 0, but must be at least 1"):
        demo(Demo(steps=0, out=tmp_path))
