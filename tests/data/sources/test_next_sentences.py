"""Pairs of sentences that follow each other, or do not."""

from collections import Counter
from itertools import pairwise

from foveate.data.sources import SOURCES
from foveate.data.sources.next_sentences import LONGEST, NEXT, OTHER, sentence_pairs


def sentences(count: int) -> list[list[str]]:
    return [["``", "It", "was", str(number), *["very"] * (number % 7), "''"] for number in range(count)]


def test_half_of_the_pairs_follow_each_other() -> None:
    texts = [" ".join(words).replace("``", '"').replace("''", '"') for words in sentences(200)]
    following = dict(pairwise(texts))
    found = sentence_pairs(sentences(200), seed=1)
    assert Counter(pair.label for pair in found) == {NEXT: 50, OTHER: 50}
    assert all((following[pair.first] == pair.second) == (pair.label == NEXT) for pair in found)
    assert found[1].place == "sentence 3"


def test_each_sentence_is_in_one_pair_and_lengths_tell_nothing() -> None:
    found = sentence_pairs(sentences(200), seed=1)
    assert len({text for pair in found for text in (pair.first, pair.second)}) == 200
    wrong = {pair.first: pair.second for pair in found if pair.label == OTHER}
    right = {pair.first: pair.second for pair in sentence_pairs(sentences(200), seed=2)}
    differences = [abs(len(second.split()) - len(right[first].split())) for first, second in wrong.items()]
    assert sum(difference <= 1 for difference in differences) > 40
    assert found == sentence_pairs(sentences(200), seed=1)


def test_sentences_beside_short_and_long_ones_are_left_out() -> None:
    some = sentences(5)
    some[1], some[3] = ["No", "."], ["very"] * (LONGEST + 1)
    assert sentence_pairs(some, seed=1) == []


def test_it_is_for_pairs() -> None:
    assert SOURCES["next-sentences"].tasks == ("pair",)
