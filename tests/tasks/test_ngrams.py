"""Kneser-Ney n-grams: probabilities by hand, and that they are probabilities."""

import math
from itertools import product

import numpy as np
import pytest

from foveate.baselines.ngrams import Ngrams
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

START, END = LEARNED.start, LEARNED.end

A, B, C = 4, 5, 6

TEXTS = [[A, B, A, END], [A, A, END], [B, END]]


def probability(model: Ngrams, tokens: list[int]) -> float:
    """Of the last of some tokens after the others."""
    return math.exp(model.log_probs([tokens])[-1])


def test_unigrams_by_hand() -> None:
    """Nine tokens: a 4 times, b twice, end 3 times. Nothing occurs once, so the discount is the one for any."""
    model = Ngrams(TEXTS, 1, 7, LEARNED.start)
    left = 0.5 * 3 / 7
    expected = [(4 - 0.5 + left) / 9, (2 - 0.5 + left) / 9, (3 - 0.5 + left) / 9, left / 9]
    assert [probability(model, [token]) for token in (A, B, END, C)] == pytest.approx(expected)


def test_bigrams_by_hand() -> None:
    """START a and a END occur twice; START b, a b, b a, a a and b END once: the discount is 5 / (5 + 2 * 2).

    Of these seven, 3 end with a, 2 with b, 2 with END: none of them once.
    """
    model, discount = Ngrams(TEXTS, 2, 7, LEARNED.start), 5 / 9
    a, b = (3 - 0.5 + 0.5 * 3 / 7) / 7, (2 - 0.5 + 0.5 * 3 / 7) / 7
    assert probability(model, [A]) == pytest.approx((2 - discount + discount * 2 * a) / 3)
    assert probability(model, [A, A]) == pytest.approx((1 - discount + discount * 3 * a) / 4)
    assert probability(model, [B, B]) == pytest.approx(discount * 2 * b / 2)
    assert probability(model, [C, A]) == pytest.approx(a)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_sum_to_one_after_anything(order: int) -> None:
    generator = np.random.default_rng(3)
    texts = [[*generator.integers(4, 11, generator.integers(1, 13)).tolist(), END] for _ in range(17)]
    model = Ngrams(texts, order, 11, LEARNED.start)
    for before in product((A, 9, 10), repeat=2):
        total = sum(probability(model, [*before, token]) for token in range(11))
        assert total == pytest.approx(1)
    assert sum(probability(model, [token]) for token in range(11)) == pytest.approx(1)


def test_what_comes_before_is_that_of_the_same_text() -> None:
    """A text begins after START, whatever text was before it."""
    model = Ngrams(TEXTS, 3, 7, LEARNED.start)
    together = model.log_probs([[A, B], [B, A, END]])
    assert together.shape == (5,)
    assert together.tolist() == [*model.log_probs([[A, B]]), *model.log_probs([[B, A, END]])]
    assert math.exp(together[0]) > probability(model, [START + 1, A])


def test_more_context_foretells_more() -> None:
    texts = [[A, B, C] * 20 + [END]] * 3
    bits = [-Ngrams(texts, order, 7, LEARNED.start).log_probs(texts).sum() for order in (1, 2, 3)]
    assert bits[0] > bits[1] > 0
    assert bits[2] < bits[0]


def test_too_many_for_a_number() -> None:
    with pytest.raises(UserError, match="5-grams of 8,000 tokens do not fit"):
        Ngrams(TEXTS, 5, 8000, LEARNED.start)
