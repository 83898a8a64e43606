"""`foveate data NAME --out FOLDER`: test images and sounds as files."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import PIL.Image
import pytest

from foveate import cli
from foveate.data.images.questions import ImageQuestion
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.sources import examples
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import Labelled
from foveate.data.worlds.maps import read_map
from foveate.errors import UserError
from foveate.forms.world import WALK


def opens(monkeypatch: pytest.MonkeyPatch, *test: Any) -> None:
    monkeypatch.setattr(examples, "open_source", lambda name, task: Splits([], [], list(test)))


def test_images_and_what_is_known_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images = [PIL.Image.new("RGB", (7, 5), colour) for colour in ("red", "blue", "green")]
    described = [SimpleNamespace(read=image.copy, captions=(f"a\n{n}", "other")) for n, image in enumerate(images)]
    opens(monkeypatch, *described)
    cli.main(["data", "emoji-captions", "--out", str(tmp_path / "x"), "--count", "2"])
    assert capsys.readouterr().out == f"{tmp_path}/x/1.png\n{tmp_path}/x/2.png\n"
    with PIL.Image.open(tmp_path / "x" / "2.png") as image:
        assert image.getpixel((0, 0)) == (0, 0, 255)
    assert (tmp_path / "x" / "examples.tsv").read_text() == "1.png\ta 0, other\n2.png\ta 1, other\n"


def test_texts_are_a_table_to_train_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens(monkeypatch, Labelled(1, "good", "a\tfine film"), Labelled(2, "bad", "dull"), Labelled(3, "bad", "long"))
    assert examples.write_examples("movie-sentiment", tmp_path / "x", 2) == [tmp_path / "x" / "examples.tsv"]
    assert (tmp_path / "x" / "examples.tsv").read_text() == "good\ta fine film\nbad\tdull\n"


def test_other_files_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens(monkeypatch, SimpleNamespace(read=PIL.Image.new("RGB", (7, 5)).copy, captions=("a",)))
    (tmp_path / "1.png").write_text("mine")
    with pytest.raises(UserError, match=f"^{tmp_path} holds other files, which might be replaced: name another --out"):
        examples.write_examples("emoji-captions", tmp_path, 1)
    assert (tmp_path / "1.png").read_text() == "mine"
    for _ in range(2):  # its own may be
        examples.write_examples("emoji-captions", tmp_path / "x", 1)


def test_questions_about_the_same_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = PIL.Image.new("RGB", (7, 5))
    asked = [("a", "what is it?", "a dog"), ("a", "is it red?", "no"), ("b", "is it red?", "yes"), ("c", "why?", "so")]
    opens(monkeypatch, *(ImageQuestion("", question, answer, image.copy, name) for name, question, answer in asked))
    assert [path.name for path in examples.write_examples("emoji-questions", tmp_path / "x", 2)] == ["1.png", "2.png"]
    table = (tmp_path / "x" / "examples.tsv").read_text()
    assert table == "1.png\twhat is it?\ta dog\n1.png\tis it red?\tno\n2.png\tis it red?\tyes\n"


def test_sounds_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.wav").write_bytes(b"sound")
    opens(monkeypatch, LabelledSound(tmp_path / "a.wav", "one", 1.0, 8000))
    (path,) = examples.write_examples("spoken", tmp_path / "x", 5)
    assert path.name == "1.wav"
    assert path.read_bytes() == b"sound"
    assert (tmp_path / "x" / "examples.tsv").read_text() == "1.wav\tone\n"


def test_walks_have_a_map_and_an_input_to_look_at(tmp_path: Path) -> None:
    """The map that is written is the one that was drawn; halls are made here, and nothing is fetched."""
    first, second = examples.write_examples("halls", tmp_path / "a folder", 2)
    route = next(iter(examples.open_source("halls", task="walk").test))
    assert (first.name, second.name) == ("1.xml", "2.xml")
    assert read_map(first) == route.walk_map
    pose = ",".join(map(str, route.path[0]))
    assert first.with_suffix(".txt").read_text() == f"{first} {pose} {route.instruction}\n"
    assert WALK.fullmatch(first.with_suffix(".txt").read_text().strip()).groups() == (
        str(first),
        pose,
        route.instruction,
    )


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]) -> None:
    there = str(tmp_path)
    assert fails("data", "brown") == "to write examples, give --out FOLDER too"
    assert fails("data", "--out", there) == "to write examples, give a name too"
    assert fails("data", "browm", "--out", there) == "unknown source 'browm'; did you mean brown?"
    assert fails("data", "brown", "--out", there, "--count", "0") == "count is 0, but must be at least 1"
    opens(monkeypatch, SimpleNamespace(words=("a",)))
    assert fails("data", "brown", "--out", there).startswith("brown: its examples are not labelled texts, images")
