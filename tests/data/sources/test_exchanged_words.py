"""Sentences of which half have two neighbouring words exchanged."""

from foveate.data.sources import SOURCES
from foveate.data.sources.exchanged_words import EXCHANGED, WRITTEN, exchangeable, labelled_sentences

SENTENCE = ("He", "saw", "the", "old", "house", ",", "and", "left", ".")


def test_what_can_be_exchanged() -> None:
    assert exchangeable(SENTENCE) == [1, 2, 3, 6]
    assert exchangeable(("It", "had", "had", "3", "ends", ".")) == []


def test_half_are_exchanged_and_none_loses_a_word() -> None:
    found = labelled_sentences([SENTENCE] * 400, seed=1)
    assert 160 < sum(label == EXCHANGED for label, _ in found) < 240
    for label, text in found:
        assert sorted(text.split()) == sorted(SENTENCE)
        assert (text == " ".join(SENTENCE)) == (label == WRITTEN)
        assert text.startswith("He ")
    assert found == labelled_sentences([SENTENCE] * 400, seed=1)
    assert found != labelled_sentences([SENTENCE] * 400, seed=2)


def test_both_ways() -> None:
    labels, texts = zip(*labelled_sentences([SENTENCE], seed=1, both=True), strict=True)
    assert labels == (WRITTEN, EXCHANGED)
    assert len(set(texts)) == 2


def test_short_and_long_sentences_are_left_out() -> None:
    assert labelled_sentences([SENTENCE[:4], SENTENCE * 3], seed=1) == []


def test_it_is_for_classifiers() -> None:
    assert SOURCES["exchanged-words"].tasks == ("classify",)
