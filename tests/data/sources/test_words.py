"""Words in fonts, from packages made by hand: matplotlib's own font under several names."""

from pathlib import Path

import matplotlib
import pytest
from archives import packages_in, write_archive

from foveate.data.sources import open_source, words
from foveate.errors import UserError

FONT = (Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf").read_bytes()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [chr(97 + number // 26) + chr(97 + number % 26) for number in range(200)]
    listed = "\n".join([*letters, "Éclair", "isn't", "incomprehensibility"])
    write_archive(tmp_path / "wamerican.deb", {"usr/share/dict/american-english": listed})
    for name in ("alpha", "beta", "gamma", "delta"):
        fonts = {f"usr/share/fonts/{name}/{name}.ttf": FONT, f"usr/share/fonts/{name}/LinBiolinum_K.otf": b"keys"}
        write_archive(tmp_path / f"fonts-{name}.deb", fonts)

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(words, "debian_packages", packages_in(tmp_path))
    for name, font in (("TRAIN", "alpha"), ("DEV", "beta"), ("TEST", "gamma"), ("SCENE", "delta")):
        monkeypatch.setattr(words, f"{name}_FONTS", (font,))
    monkeypatch.setattr(words, "COUNTS", (300, 40, 50))


def test_the_parts_share_neither_words_nor_fonts(packages: None) -> None:
    splits = open_source("words", task="read")
    parts = [list(part) for part in (splits.train, splits.dev, splits.test)]
    assert [len(part) for part in parts] == [300, 40, 50]
    assert splits.dev.report == "words.dev: 40 images (10 words in 1 fonts, and numbers)"
    known = [{one.label.lower() for one in part if one.label.isalpha()} for part in parts]
    assert not known[0] & known[1]
    assert not known[0] & known[2]
    assert not known[1] & known[2]
    assert all(len(word) == 2 for some in known for word in some)
    assert [{one.font.name for one in part} for part in parts] == [{"alpha.ttf"}, {"beta.ttf"}, {"gamma.ttf"}]
    assert parts[2][3].read().width > 10


def test_scene_words_have_more_fonts_to_train_on_and_the_same_to_measure_on(packages: None) -> None:
    splits = open_source("scene-words", task="read")
    parts = [list(part) for part in (splits.train, splits.dev, splits.test)]
    assert [len(part) for part in parts] == [300, 40, 50]
    notes = "10 words in 1 fonts, numbers, and letters without a meaning"
    assert splits.dev.report == f"scene-words.dev: 40 images ({notes})"
    fonts = [{one.font.name for one in part} for part in parts]
    assert fonts == [{"alpha.ttf", "delta.ttf"}, {"beta.ttf"}, {"gamma.ttf"}]
    assert parts[2][3].read().mode == "L"


def test_a_damaged_cache(packages: None, tmp_path: Path) -> None:
    open_source("words", task="read")
    (tmp_path / "cache/words/beta/beta.ttf").unlink()
    with pytest.raises(UserError, match="is damaged: no fonts of beta; remove it to fetch it again"):
        open_source("words", task="read")
