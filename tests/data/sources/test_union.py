"""Several sources as one."""

import pytest

from foveate.data.sources import SOURCES, open_source
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.sources.union import union, union_of_prose
from foveate.data.text.documents import Paragraph, Prose
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError


def splits(name, train, dev, test):
    texts = zip((train, dev, test), ("train", "dev", "test"), strict=True)
    return Splits(*(ParallelText.from_pairs(pairs, f"{name}.{part}") for pairs, part in texts))


COD = splits("cod", [("a", "A1"), ("b", "B1"), ("c", "C1"), ("d", "D1")], [("e", "E1")], [("f", "F1")])
EEL = splits("eel", [("F", "x"), ("y", "e1"), ("e1", "z")], [("g", "f1"), ("h", "H")], [("i", "I"), ("j", "J")])


def test_mixed_evenly_and_nothing_held_out_is_seen_in_training():
    both = union([COD, EEL])
    # of four and three: at 0, 0, 1/4, 1/3, 1/2, 2/3, 3/4; F and e1 are held out by the other, in another letter case
    assert list(both.train) == [("a", "A1"), ("b", "B1"), ("c", "C1"), ("e1", "z"), ("d", "D1")]
    assert both.train.report == "cod+eel.train: 5 pairs; left out: 2 held out by another of them"
    assert list(both.dev) == [("e", "E1"), ("h", "H")]
    assert both.dev.report == "cod+eel.dev: 2 pairs; left out: 1 held out by another of them"
    assert list(both.test) == [("f", "F1"), ("i", "I"), ("j", "J")]
    assert both.test.report == "cod+eel.test: 3 pairs"


def test_it_streams():
    passes = []

    def read():
        passes.append(1)
        return iter([("a", "A"), ("b", "B")])

    text = ParallelText("cod.train", read)
    both = union([Splits(text, COD.dev, COD.test), EEL])
    assert passes == []
    first, second = (list(iter(both.train)) for _ in range(2))  # a list of the text itself would ask for its length
    assert first == second
    assert len(passes) == 3  # once to count


def test_by_name(monkeypatch):
    for name, parts in {"cod": COD, "eel": EEL}.items():
        source = Source(name, ("translate",), "fish", "1 MB", "MIT", lambda *_, parts=parts: parts, ("en", "fr", "de"))
        monkeypatch.setitem(SOURCES, name, source)
    monkeypatch.setitem(SOURCES, "plain", Source("plain", ("translate",), "x", "1 MB", "MIT", lambda _: COD))
    assert open_source("cod+eel", "fr", "de").train.check().kept == 5
    for names, complaint in {
        "cod+eels": "unknown source 'eels'; did you mean eel",
        "cod+": "unknown source ''",
        "cod+plain": r"^cod\+plain: only texts in two languages, and texts of prose, can be joined$",
    }.items():
        with pytest.raises(UserError, match=complaint):
            open_source(names)
    with pytest.raises(UserError, match="unknown language of eel 'ru'"):
        open_source("eel+cod", "en", "ru")


def test_prose_one_behind_the_other() -> None:
    def splits(name: str) -> Splits[Prose]:
        sides = ("train", "dev", "test")
        return Splits(*(Prose.from_paragraphs([Paragraph(name, "", f"{name} {s}")], f"{name}.{s}") for s in sides))

    found = union_of_prose([splits("sea"), splits("land")])
    assert [paragraph.text for paragraph in found.dev] == ["sea dev", "land dev"]
    assert found.train.report == "sea+land.train: 2 paragraphs, 4 words"
