"""The table of sources and its one entry point."""

from pathlib import Path

import pytest

from foveate.data.sources import SOURCES, open_source
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.errors import UserError


def test_every_source_says_what_it_is():
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.tasks
        assert "MB" in source.size
        assert source.licence
        assert source.about
        if "translate" in source.tasks:
            assert {"en", "fr", "de", "es"} <= set(source.languages)


TINY = Splits("train", "dev", "test")


@pytest.fixture
def fish(monkeypatch):
    """A source without languages."""

    def open_fish(before_fetch):
        before_fetch(Path("cache/fish"))
        return TINY

    source = Source("fish", ("classify", "tag"), "about fish", "7 MB", "MIT", open_fish)
    monkeypatch.setitem(SOURCES, "fish", source)


def test_a_source_without_languages(fish):
    told = []
    assert open_source("fish", announce=told.append, task="tag") is TINY
    assert told == ["fetching fish (7 MB; licence MIT) into cache/fish"]


def test_a_source_of_another_task(fish, monkeypatch):
    with pytest.raises(UserError, match=r"^fish is text for classify and tag; sources for translate: emoji, "):
        open_source("fish")
    monkeypatch.setattr("foveate.data.sources.named.SOURCES", {"fish": SOURCES["fish"]})
    with pytest.raises(UserError, match=r"^fish is text for classify and tag; sources for sing: none$"):
        open_source("fish", task="sing")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("emoij",), "unknown source 'emoij'; did you mean emoji"),
        (("emoji", "en", "frr"), "unknown language of emoji 'frr'; did you mean fr"),
        (("libreoffice-help", "english", "fr"), "unknown language of libreoffice-help 'english'; "),
        (("emoji", "fr", "fr"), "emoji: source and target language are both 'fr'"),
    ],
)
def test_names_that_do_not_exist(arguments, complaint):
    with pytest.raises(UserError) as caught:
        open_source(*arguments)
    assert str(caught.value).startswith(complaint)
