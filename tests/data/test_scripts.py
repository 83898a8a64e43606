"""Words in scripts with and without spaces, counted by hand."""

from pathlib import Path
from unicodedata import normalize

import pytest

import foveate
from foveate.data.text.scripts import (
    begins_word,
    continues_word,
    count_words,
    is_chinese,
    join_texts,
    split_words,
    unspaced,
    word_spans,
    words_and_signs,
)
from foveate.forms.reading import text_metrics
from foveate.forms.whisper_tokens import plain_words
from foveate.metrics.captions import same_words
from foveate.metrics.error_rates import transcript_errors


@pytest.mark.parametrize(
    ("text", "count"),
    [("a small boat", 3), ("小船很小。", 5), ("ボートは boat", 5), ("", 0), ("l’eau\u00a0!", 2), ("เรือ", 3)],
)
def test_each_letter_of_a_script_without_spaces_is_a_word(text: str, count: int) -> None:
    assert count_words(text) == count
    assert len(word_spans(text)) in (count, count - (text == "小船很小。"))


def test_other_spaces_are_inside_words() -> None:
    assert split_words(" les 10\u00a0000\tbateaux \n") == ["les", "10\u00a0000", "bateaux"]


def test_scripts_are_told_apart() -> None:
    assert unspaced(["小船很小。", "a"])
    assert not unspaced(["the boat 小"])
    assert not unspaced([])
    assert is_chinese(["小船", "a"])
    assert not is_chinese(["小さい船"])


MARKED = {
    "Hindi": ("यह किताब मेरी है", "यह कताब मेरी हो", 2),
    "Tamil": ("நான் வீடு போகிறேன்", "நான் வீடி போகிறேன்", 1),
    "Bengali": ("আমি ভাত খাই", "আমি ভাত খাও", 1),
    "Hebrew with points": ("שָׁלוֹם עוֹלָם", "שָׁלוֹם עוֹלֶם", 1),
    "Arabic with vowels": ("كَتَبَ الوَلَدُ", "كُتِبَ الوَلَدُ", 1),
    "Persian": ("او می\u200cخواهد", "او می\u200cخواهم", 1),
    "French, decomposed": ("le cafe\u0301 noir", "le cafe noir", 1),
}
"""A text, another one with wrong words, and how many of its words are wrong."""


@pytest.mark.parametrize("language", MARKED)
def test_marks_belong_to_their_letters_wherever_words_are_compared(language: str) -> None:
    right, wrong, count = MARKED[language]
    words = right.split()
    assert plain_words(f"«{right}!»").split() == words
    assert words_and_signs(f"{right}!") == [*words, "!"]
    for compared in (lambda text: text, plain_words):
        rates = transcript_errors([compared(wrong)], [compared(right)])
        assert rates["word_error_rate"] == pytest.approx(100 * count / len(words))
        assert transcript_errors([compared(right)], [compared(normalize("NFD", right))])["character_error_rate"] == 0
    assert same_words(right, [right])
    assert not same_words(wrong, [right])
    assert text_metrics([wrong], [right])["accuracy_ignoring_case"] == 0
    assert text_metrics([f"{right}."], [normalize("NFD", right)])["accuracy_ignoring_case"] == 100
    for word in words:
        assert all(continues_word(word[:place], word[place:]) for place in range(1, len(word)))
        assert not any(begins_word(word[:place], word[place:]) for place in range(1, len(word)))


@pytest.mark.parametrize(
    ("text", "words"), [("今天天气。", 5), ("ฉันกินข้าว", 7), ("ホテルで tea", 5), ("我 eat 饭", 3), ("two words", 2)]
)
def test_error_rates_count_letters_where_no_space_separates_words(text: str, words: int) -> None:
    assert transcript_errors([""], [text])["word_error_rate"] == 100
    assert transcript_errors([f"{text} x"], [text])["word_error_rate"] == pytest.approx(100 / words)


def test_where_words_begin_and_texts_join() -> None:
    assert [begins_word(*pair) for pair in (("今", "天"), ("天", "。"), ("a", "今"), ("天", "a"))] == [1, 0, 1, 1]
    assert [begins_word(*pair) for pair in (("ห", "้"), ("a", "b"), ("a", " b"), ("", "b"), ("a", ""))] == [
        0,
        0,
        1,
        1,
        0,
    ]
    assert join_texts(["今天", " 很好", "", "fine ", "day"]) == "今天很好fine day"


def test_nothing_asks_for_letters_without_their_marks() -> None:
    """`str.isalnum` is false of a vowel sign: `in_word` is what to ask."""
    files = (Path(foveate.__file__).parent).rglob("*.py")
    assert [str(file) for file in files if "isalnum" in file.read_text(encoding="utf-8")] == []
