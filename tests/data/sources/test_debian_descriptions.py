"""Descriptions of packages: how they are read, aligned and split."""

from contextlib import contextmanager

import pytest

from foveate.data.sources import debian_descriptions, open_source
from foveate.data.sources.debian_descriptions import aligned, paragraphs, read_descriptions

ENGLISH = """Package: fish
Description-md5: 1f
Description-en: fish for everybody
 This is a fish. It swims
 in the sea.
 .
 It has:
  * two eyes, and
    a mouth;
  - fins.
 .
 No. 5 is good.

Package: bird
Description-md5: 2e
Description-en: bird that flies
 It flies.

Package: tree
Description-md5: 3d
Description-en: tree
"""
FRENCH = """Package: bird
Description-md5: 2e
Description-fr: oiseau qui vole
 Il vole.
 .
 Il chante aussi.

Package: fish
Description-md5: 1f
Description-fr: poisson pour tous
 C'est un poisson. Il nage dans
 la mer.
 .
 Il a\u2009:
  * deux yeux et une bouche\u22c5;
  * des nageoires.
 .
 Le nº 5 est bon.

Package: moss
Description-md5: 4c
Description-fr: mousse
"""

NUMBERS = range(1000, 1293)
"""Packages enough that some are held out."""


def test_paragraphs():
    lines = ENGLISH.split("\n\n")[0].split("\n")[2:]
    assert paragraphs([lines[0].partition(": ")[2], *lines[1:]]) == [
        "fish for everybody",
        "This is a fish. It swims in the sea.",
        "It has:",
        "two eyes, and a mouth;",
        "fins.",
        "No. 5 is good.",
    ]
    assert paragraphs(["title"]) == ["title"]
    assert paragraphs([]) == []


def test_reading(tmp_path):
    (tmp_path / "list").write_text(FRENCH, encoding="utf-8")
    found = dict(read_descriptions(tmp_path / "list"))
    assert list(found) == ["2e", "1f", "4c"]
    assert found["2e"] == ["oiseau qui vole\n", " Il vole.\n", " .\n", " Il chante aussi.\n"]


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        (["a", " One. Two."], ["b", " Un. Deux."], [("a", "b"), ("One.", "Un."), ("Two.", "Deux.")]),
        (["a", " One. Two."], ["b", " Un, deux."], [("a", "b"), ("One. Two.", "Un, deux.")]),
        (["a", " One.", " .", " Two."], ["b", " Un. Deux."], [("a", "b")]),
        (["a", " e.g. one"], ["b", " p. ex. un"], [("a", "b"), ("e.g. one", "p. ex. un")]),
        (["a", " One. Two."], ["b", " 一。二。"], [("a", "b"), ("One.", "一。"), ("Two.", "二。")]),
    ],
)
def test_sentences_are_aligned_where_their_numbers_agree(source, target, pairs):
    assert list(aligned(source, target)) == pairs


def test_splits(tmp_path, monkeypatch):
    asked = []

    @contextmanager
    def lists(languages, folder):
        asked.append(languages)
        files = [folder / "en", folder / "fr"]
        for file, text in zip(files, (ENGLISH, FRENCH), strict=True):
            many = "".join(
                f"\nPackage: x\nDescription-md5: {number}\nDescription-x: {text[9]} {number}\n" for number in NUMBERS
            )
            file.write_text(text + many, encoding="utf-8")
        yield [[file] for file in files]

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(debian_descriptions, "debian_descriptions", lists)
    monkeypatch.setattr(debian_descriptions, "HELD_OUT", 0.1)
    splits = open_source("debian-descriptions", "en", "fr", announce=lambda _: None)
    found = {pair for text in (splits.train, splits.dev, splits.test) for pair in text}
    assert sorted(pair for pair in found if pair[1][0] != "b") == [
        ("It has:", "Il a :"),
        ("It swims in the sea.", "Il nage dans la mer."),
        ("No. 5 is good.", "Le nº 5 est bon."),
        ("This is a fish.", "C'est un poisson."),
        ("bird that flies", "oiseau qui vole"),
        ("fins.", "des nageoires."),
        ("fish for everybody", "poisson pour tous"),
        ("two eyes, and a mouth;", "deux yeux et une bouche ;"),
    ]
    assert asked == [["en", "fr"]]
    open_source("debian-descriptions", "pt-br", "zh-cn", announce=lambda _: None)
    assert asked[1] == ["pt_BR", "zh_CN"]
