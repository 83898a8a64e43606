"""Tux Paint's stamps from their package."""

import io
from collections import Counter
from pathlib import Path

import PIL.Image
import pytest
from archives import write_archive

from foveate.data.sources import open_source, stamps


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`stamps_1_all.deb` instead of the package."""

    class Packages:
        def __init__(self, names: list[str], folder: Path) -> None:
            assert names == ["tuxpaint-stamps-default"]

        def __enter__(self) -> list[Path]:
            return [tmp_path / "stamps_1_all.deb"]

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stamps, "debian_packages", Packages)


def test_the_three_parts(tmp_path: Path, packages: None) -> None:
    content = io.BytesIO()
    PIL.Image.new("RGBA", (3, 2)).save(content, "PNG")
    names = [f"{place}/{number:02}.png" for place in stamps.TOPICS.values() for number in range(11)]
    names += ["animals/birds/cartoon/tweety.png", "animals/birds/notes.txt", "symbols/a.png"]
    write_archive(tmp_path / "stamps_1_all.deb", {stamps.ROOT + name: content.getvalue() for name in names})

    splits = open_source("stamps", task="classify-image")
    counts = [Counter(example.label for example in part) for part in (splits.train, splits.dev, splits.test)]
    assert counts == [dict.fromkeys(stamps.TOPICS, count) for count in (7, 1, 3)]
    test = [Path(example.place).name for example in splits.test if example.label == "birds"]
    assert test == ["02.png", "05.png", "08.png"]
    assert splits.train[0].read().size == (3, 2)


def test_captions(tmp_path: Path, packages: None) -> None:
    """Translations are left out, and what has no caption, letters and drawings."""
    content = io.BytesIO()
    PIL.Image.new("RGBA", (3, 2)).save(content, "PNG")
    files = {}
    for number in range(10):
        files[f"animals/birds/{number}.png"] = content.getvalue()
        files[f"animals/birds/{number}.txt"] = f"The  {number}th crow.\naf.utf8='n Kraai.\n".encode()
    for name in ("animals/cartoon/a", "symbols/b"):
        files |= {f"{name}.png": content.getvalue(), f"{name}.txt": b"Left out."}
    files["food/c.png"] = content.getvalue()
    write_archive(tmp_path / "stamps_1_all.deb", {stamps.ROOT + name: one for name, one in files.items()})
    splits = open_source("stamp-captions", task="caption")
    assert [len(part) for part in (splits.train, splits.dev, splits.test)] == [6, 1, 3]
    assert splits.train[1].captions == ("The 1th crow.",)
    assert Path(splits.train[1].place).name == "animals-birds-1.png"
