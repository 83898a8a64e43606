"""Sampling: the right distribution, the right support, the same draws from the same seed."""

import math

import pytest
import torch

from foveate.decoding import sample
from foveate.decoding.sampling import candidates
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

PAD, START, END = LEARNED.pad, LEARNED.start, LEARNED.end

A, B, C = 4, 5, 6
ONE = {"source": torch.tensor([0])}
TWO = {"source": torch.tensor([3, 7])}
CHANCES = {PAD: 0.1, START: 0.1, A: 0.4, B: 0.24, C: 0.16}


def draws(model, **settings) -> list[int]:
    """The first tokens of 3001 outputs."""
    generator = torch.Generator().manual_seed(3)
    (found,) = sample(model, ONE, LEARNED, 1, samples=3001, generator=generator, **settings)
    return [hypothesis.tokens[0] for hypothesis in found]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {A: 0.5, B: 0.3, C: 0.2}),
        ({"temperature": 0.5}, {A: 25 / 38, B: 9 / 38, C: 4 / 38}),
        ({"temperature": 1e-37}, {A: 1.0}),
        ({"top_k": 2}, {A: 5 / 8, B: 3 / 8}),
        ({"top_p": 0.75}, {A: 5 / 8, B: 3 / 8}),
        ({"top_k": 2, "top_p": 0.6}, {A: 1.0}),
        ({"min_p": 0.5}, {A: 5 / 8, B: 3 / 8}),
        ({"min_p": 0.9}, {A: 1.0}),
    ],
)
def test_draws_follow_the_distribution(markov, settings, expected) -> None:
    drawn = draws(markov({START: CHANCES}, vocabulary=7), **settings)
    assert set(drawn) == set(expected)
    # 13.8 is exceeded once in a thousand with two degrees of freedom
    chi_square = sum((drawn.count(token) - 3001 * p) ** 2 / (3001 * p) for token, p in expected.items())
    assert chi_square < 13.8


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.2, [5]), (0.4, [5]), (0.5, [5, 0]), (0.75, [5, 0, 2]), (0.9, [5, 0, 2, 1]), (0.99, [5, 0, 2, 1, 4])],
)
def test_the_nucleus_is_the_smallest_that_reaches_top_p(top_p, kept) -> None:
    # sums from the likeliest on: 0.45, 0.7, 0.85, 0.95, 1
    chances = torch.tensor([[0.25, 0.1, 0.15, 0.0, 0.05, 0.45]])
    logits, tokens = candidates(chances.log(), None, top_p)
    assert tokens[logits > -math.inf].tolist() == kept


def test_a_wide_nucleus_among_many_tokens() -> None:
    # 997 equal tokens: 0.7 takes the first 698, a row of one sure token only that one
    logits = torch.zeros(2, 997)
    logits[1, 613] = 30
    kept, tokens = candidates(logits, None, 0.7)
    assert tokens[0, kept[0] > -math.inf].tolist() == list(range(698))
    assert tokens[1, kept[1] > -math.inf].tolist() == [613]


def test_a_nucleus_of_everything_keeps_everything() -> None:
    logits = torch.tensor([[0.0, -90.0, 3.0]])
    assert candidates(logits, None, 1.0) == (logits, None)


def test_top_k_keeps_exactly_k_of_equals() -> None:
    logits, tokens = candidates(torch.zeros(2, 7), 3, None)
    assert tokens.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert torch.equal(logits, torch.zeros(2, 3))


def test_log_prob_is_the_models_own_whatever_was_cut(markov) -> None:
    model = markov({START: CHANCES, A: {END: 0.3, B: 0.7}}, vocabulary=7)
    ((found,),) = sample(model, ONE, LEARNED, 2, temperature=0.1, top_k=1)
    assert found.tokens == [A, B]
    assert found.log_prob == pytest.approx(math.log(0.4 * 0.7), abs=1e-6)
    assert found.score == found.log_prob


def test_each_sample_keeps_its_own_history_and_leaves_when_it_ends(scripted) -> None:
    model = scripted(vocabulary=11)
    found = sample(model, TWO, LEARNED, 13, samples=5, generator=torch.Generator().manual_seed(1))
    lengths = []
    for source, hypotheses in zip([3, 7], found, strict=True):
        assert len({tuple(hypothesis.tokens) for hypothesis in hypotheses}) > 1
        for hypothesis in hypotheses:
            tokens = (*hypothesis.tokens, END) if hypothesis.ended else tuple(hypothesis.tokens)
            assert hypothesis.log_prob == pytest.approx(model.log_prob(source, tokens), abs=1e-5)
            lengths.append(len(tokens))
    # All samples of an example share the first step.
    assert model.rows == [2, *(sum(length > step for length in lengths) for step in range(1, max(lengths)))]


def test_every_example_has_its_own_limit(markov) -> None:
    found = sample(markov({START: {A: 1.0}, A: {A: 1.0}}, vocabulary=7), TWO, LEARNED, torch.tensor([2, 5]), samples=3)
    assert [[len(hypothesis.tokens) for hypothesis in hypotheses] for hypotheses in found] == [[2] * 3, [5] * 3]


def test_the_same_seed_draws_the_same(scripted) -> None:
    model = scripted(vocabulary=11)
    first, again, other = (
        sample(model, ONE, LEARNED, 13, samples=5, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, not 0"),
        ({"temperature": 0.0}, r"temperature must be from 1e-37 to 1e\+37, not 0.0"),
        ({"temperature": 1e-39}, r"temperature must be from 1e-37 to 1e\+37, not 1e-39"),
        ({"temperature": math.nan}, r"temperature must be from 1e-37 to 1e\+37, not nan"),
        ({"top_k": 0}, "top_k must be at least 1, not 0"),
        ({"top_p": 0.0}, "top_p must be greater than 0 and at most 1, not 0.0"),
        ({"top_p": 1.5}, "top_p must be greater than 0 and at most 1, not 1.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(markov, settings, message) -> None:
    with pytest.raises(UserError, match=message):
        sample(markov({}, vocabulary=7), ONE, LEARNED, 5, **settings)


def test_the_likeliest_token_is_left_however_little_is_asked_for(markov) -> None:
    model = markov({START: {A: 0.6, END: 0.4}, A: {END: 0.9, A: 0.1}}, vocabulary=7)
    assert [one.tokens for one in sample(model, ONE, LEARNED, 5, samples=3, top_p=1e-50)[0]] == [[A]] * 3


@pytest.mark.parametrize("settings", [{}, {"top_k": 2}, {"top_p": 0.75}])
def test_a_model_without_numbers_is_told_of(markov, settings) -> None:
    with pytest.raises(UserError, match="gave NaN within 2 steps of decoding; its weights are damaged or diverged"):
        sample(markov({START: {A: math.nan}}, vocabulary=7), ONE, LEARNED, 5, **settings)
