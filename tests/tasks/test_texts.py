"""What a training is validated on is from all over a text: files have an order, as the Brown corpus has its genres."""

import pytest

from foveate.data import LabelledText, ParallelText
from foveate.tasks.texts import spread

WORDS = "abcdefghi"


@pytest.mark.parametrize(("total", "expected"), [(0, []), (3, [0, 1, 2]), (4, [0, 2]), (9, [0, 3, 6]), (10, [0, 4, 8])])
def test_at_most_so_many_from_all_over(total: int, expected: list[int]) -> None:
    assert spread(iter(range(total)), total, 3) == expected


def test_labels_of_texts_from_all_over() -> None:
    text = LabelledText.from_pairs([("X", word) for word in WORDS])
    assert [example.text for example in text.some(3)] == ["a", "d", "g"]


def test_pairs_from_all_over() -> None:
    text = ParallelText.from_pairs([(word, word.upper()) for word in WORDS])
    assert text.some(3) == [("a", "A"), ("d", "D"), ("g", "G")]
    assert len(text) == 9
