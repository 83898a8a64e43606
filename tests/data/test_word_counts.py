"""Words are counted in bounded memory, and exactly while they are few."""

import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest

from foveate.data.tokens import word_counts
from foveate.data.tokens.tokenizers import TRAINERS
from foveate.data.tokens.word_counts import WordCounts

TEXT = ["l'eau  est\tfroide : 3,5 °C !", "Σίσυφος ΣΙΣΥΦΟΣ", " dog… (sea)", "", "日本語 の 文。"] * 3


def made_up(words: int) -> Iterator[str]:
    """Lines of words that each occur once, one of them "the"."""
    draw = random.Random(1)
    for _ in range(words // 10):
        yield " ".join(["the", *("".join(draw.choices("abcdefghij", k=9)) for _ in range(9))])


def counted(texts: Iterator[str]) -> Counter[str]:
    return Counter(word for text in texts for word in text.split(" "))


def test_few_words_are_counted_exactly() -> None:
    counts = WordCounts(iter(TEXT))
    expected = Counter(word for text in TEXT for word in text.split(" "))
    expected.pop("")
    found = counted(counts.texts())
    found.pop("", None)
    assert found == expected
    assert counts.report == ""


@pytest.mark.parametrize("name", TRAINERS)
def test_a_vocabulary_is_that_of_the_texts_themselves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = TRAINERS[name](TEXT, 120, True).copy().to_str()
    monkeypatch.setattr(WordCounts, "texts", lambda self: iter(TEXT))
    assert TRAINERS[name](TEXT, 120, True).copy().to_str() == found


def test_the_rarest_of_too_many_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "MOST", 900)
    monkeypatch.setattr(word_counts, "PIECE", 10)
    late = ["dernier mot"] * 20  # frequent, but behind everything else
    texts = [*made_up(5_000), *late, *made_up(100)]
    counts = WordCounts(texts)
    found = counted(counts.texts())
    assert found["the"] == 510
    assert found["dernier"] == found["mot"] == 20
    assert 90 < len(found) < 130
    assert "more than 900 characters" in counts.report
    assert list(WordCounts(texts).texts()) == list(counts.texts())


def test_words_that_occur_equally_often_are_kept_from_all_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "MOST", 9_000)
    monkeypatch.setattr(word_counts, "PIECE", 10)
    texts = list(made_up(10_000))
    kept = counted(WordCounts(texts).texts())
    first, second = (
        sum(word in kept for text in half for word in text.split()[1:]) for half in (texts[:500], texts[500:])
    )
    assert 0.8 < first / second < 1.25


@pytest.mark.parametrize("name", ["subwords", "characters"])
def test_no_character_is_forgotten(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "MOST", 900)
    monkeypatch.setattr(word_counts, "PIECE", 10)
    vocabulary = TRAINERS[name]([*made_up(5_000), "quartz", *made_up(5_000)], 60)
    assert vocabulary.decode(vocabulary.encode(["zutrqa"])) == ["zutrqa"]
    assert "most frequent" in vocabulary.report


def test_memory_does_not_grow_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "MOST", 20_000)
    monkeypatch.setattr(word_counts, "PIECE", 100)

    def peak(words: int) -> int:
        tracemalloc.start()
        WordCounts(made_up(words))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(100_000) < 1.2 * peak(20_000)
