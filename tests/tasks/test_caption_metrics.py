"""BLEU and CIDEr-D of captions, against numbers by hand."""

import math
from statistics import mean

import pytest

from foveate.metrics.captions import CountedBleu, cider_scores, same_words


def test_cider_d_by_hand() -> None:
    """Two images; "a" is in the references of both, so it weighs nothing; "dog", "cat", "a dog", "a cat" weigh log 2.

    "a dog dog" against "a dog": of "dog" (twice in the caption) one counts, so unigrams give 1 * 1 / (2 * 1), and
    bigrams "a dog" (log 2) and "dog dog" (in no reference, log 2 too) give 1 / (sqrt(2) * 1). A word too many costs
    e^(-1 / 72). There are no trigrams in the reference. "a dog" against "a cat" has nothing in common.
    """
    references = [["a dog"], ["a cat"]]
    expected = 10 * (0.5 + 1 / math.sqrt(2)) / 4 * math.exp(-1 / 72) / 2
    assert mean(cider_scores(["a dog dog", "A dog"], references)) == pytest.approx(expected, rel=1e-9)


def test_the_same_caption_has_ten() -> None:
    references = [["one two three four"], ["five six seven eight nine"]]
    assert mean(cider_scores([own[0] for own in references], references)) == pytest.approx(10)


def test_several_references_count_by_their_mean() -> None:
    references = [["one two three four", "nothing like it here"], ["five six seven eight"]]
    assert mean(cider_scores(["one two three four", ""], references)) == pytest.approx(10 / 2 / 2)


def test_bleu_takes_another_number_of_references_for_each_image() -> None:
    assert CountedBleu(["a b c d e", "x y z w"], [["q", "A b c d e"], ["x y z w"]])(range(2)) == pytest.approx(100)


def test_bleu_of_captions_that_are_too_short_for_four_words() -> None:
    """All of one word, one of two right: unigrams alone count."""
    assert CountedBleu(["dog", "cat"], [["dog"], ["key"]])(range(2)) == pytest.approx(50)


def test_same_words() -> None:
    assert same_words("What is  left?", ["q", "what is left ?"])
    assert not same_words("what is left", ["what is left ?"])
    assert not same_words("", ["dog"])
