"""Greedy search: the likeliest token at each step."""

import math

import pytest
import torch

from foveate.decoding import greedy
from foveate.decoding.settings import Decoding, decode
from foveate.special_tokens import LEARNED

PAD, START, END, UNKNOWN = LEARNED.pad, LEARNED.start, LEARNED.end, LEARNED.unknown

A, B, C = 4, 5, 6
SOURCES = {"source": torch.tensor([11, 5, 7])}


def test_follows_the_likeliest_token_to_the_end(markov) -> None:
    model = markov({START: {A: 0.6, B: 0.4}, A: {B: 0.7, END: 0.3}, B: {END: 0.9, A: 0.1}}, vocabulary=7)
    (found,) = greedy(model, {"source": torch.tensor([0])}, LEARNED, 13)
    assert found.tokens == [A, B]
    assert found.log_prob == pytest.approx(math.log(0.6 * 0.7 * 0.9), abs=1e-6)
    assert found.score == found.log_prob
    assert found.ended


def test_pad_and_start_are_never_written_but_keep_their_probability(markov) -> None:
    model = markov({START: {PAD: 0.5, START: 0.3, A: 0.2}, A: {START: 0.8, END: 0.2}}, vocabulary=7)
    (found,) = greedy(model, {"source": torch.tensor([0])}, LEARNED, 13)
    assert found.tokens == [A]
    assert found.log_prob == pytest.approx(math.log(0.2 * 0.2), abs=1e-6)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_no_output_has_an_unknown_word(markov, method) -> None:
    model = markov({START: {UNKNOWN: 0.8, A: 0.2}, A: {UNKNOWN: 0.6, END: 0.4}}, vocabulary=7)
    settings = Decoding(method=method, max_new_tokens=5)
    ((found,),) = decode(model, {"source": torch.tensor([0])}, LEARNED, torch.tensor([1]), settings)
    assert found.tokens == [A]
    if method != "sample":
        assert found.log_prob == pytest.approx(math.log(0.2 * 0.4), abs=1e-6)


def test_an_output_cut_off_at_the_limit_says_so(markov) -> None:
    model = markov({START: {A: 1.0}, A: {A: 0.9, END: 0.1}}, vocabulary=7)
    first, second = greedy(model, {"source": torch.tensor([0, 0])}, LEARNED, torch.tensor([3, 5]))
    assert (first.tokens, first.ended) == ([A] * 3, False)
    assert (second.tokens, second.ended) == ([A] * 5, False)
    assert first.log_prob == pytest.approx(2 * math.log(0.9), abs=1e-6)
    assert model.rows == [2, 2, 2, 1, 1]


def test_an_output_may_end_on_the_last_step(markov) -> None:
    model = markov({START: {A: 1.0}, A: {END: 0.9, A: 0.1}}, vocabulary=7)
    (found,) = greedy(model, {"source": torch.tensor([0])}, LEARNED, 2)
    assert (found.tokens, found.ended) == ([A], True)


def test_finished_rows_leave_and_the_others_keep_their_own_history(scripted) -> None:
    model = scripted(vocabulary=7)
    together = greedy(model, SOURCES, LEARNED, 17)
    lengths = sorted(len(found.tokens) + found.ended for found in together)
    assert len(set(lengths)) > 1
    assert model.rows == [sum(length > step for length in lengths) for step in range(max(lengths))]
    for source, found in zip(SOURCES["source"], together, strict=True):
        assert greedy(model, {"source": source[None]}, LEARNED, 17) == [found]
        tokens = (*found.tokens, END) if found.ended else tuple(found.tokens)
        assert found.log_prob == pytest.approx(model.log_prob(int(source), tokens), abs=1e-5)


def test_repetition_makes_tokens_less_likely(markov) -> None:
    """By three, the log-probability of A falls from -0.51 to -1.53, below that of B, -1.2; rows that end are left."""
    model = markov({START: {A: 0.6, B: 0.4}, A: {A: 0.6, B: 0.3, END: 0.1}, B: {A: 0.6, END: 0.4}}, vocabulary=7)
    inputs, lengths = {"source": torch.tensor([0, 0])}, torch.tensor([2, 4])
    plain, penalized = (greedy(model, inputs, LEARNED, lengths, factor) for factor in (1.0, 3.0))
    assert [one.tokens for one in plain] == [[A] * 2, [A] * 4]
    assert [one.tokens for one in penalized] == [[A, B], [A, B]]
    assert (penalized[0].ended, penalized[1].ended) == (False, True)
    expected = math.log(0.6) + math.log(0.3) + math.log(0.4)
    assert penalized[1].log_prob == pytest.approx(expected, abs=1e-6), "of the model, before the penalty"
