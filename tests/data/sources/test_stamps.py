"""Tux Paint's stamps from their package."""

import io
from collections import Counter
from pathlib import Path

import PIL.Image
import pytest
from archives import write_archive

from foveate.data import open_source
from foveate.data.sources import stamps


def test_the_three_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    PIL.Image.new("RGBA", (3, 2)).save(content, "PNG")
    names = [f"{place}/{number:02}.png" for place in stamps.TOPICS.values() for number in range(11)]
    names += ["animals/birds/cartoon/tweety.png", "animals/birds/notes.txt", "symbols/a.png"]
    write_archive(tmp_path / "stamps_1_all.deb", {stamps.ROOT + name: content.getvalue() for name in names})

    class Packages:
        def __init__(self, names: list[str], folder: Path) -> None:
            assert names == ["tuxpaint-stamps-default"]

        def __enter__(self) -> list[Path]:
            return [tmp_path / "stamps_1_all.deb"]

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stamps, "debian_packages", Packages)
    splits = open_source("stamps", task="classify-image")
    counts = [Counter(example.label for example in part) for part in (splits.train, splits.dev, splits.test)]
    assert counts == [dict.fromkeys(stamps.TOPICS, count) for count in (7, 1, 3)]
    test = [Path(example.place).name for example in splits.test if example.label == "birds"]
    assert test == ["02.png", "05.png", "08.png"]
    assert splits.train[0].read().size == (3, 2)
