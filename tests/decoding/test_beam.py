"""Beam search against outputs counted out one by one."""

import math

import pytest
import torch

from foveate.decoding import beam, greedy
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

START, END = LEARNED.start, LEARNED.end

A, B, C = 4, 5, 6
SOURCES = {"source": torch.tensor([11, 5, 7])}
ONE = {"source": torch.tensor([0])}


def close(expected):
    return pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("length_penalty", [-0.5, 0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_all_beginnings_finds_the_best_outputs(scripted, all_outputs, length_penalty) -> None:
    # words 4 to 6 and at most 4 tokens: no more than 3 ** 3 = 27 beginnings ever
    model = scripted(vocabulary=7)
    found = beam(model, SOURCES, LEARNED, 4, width=27, n_best=5, length_penalty=length_penalty, patience=None)
    for source, hypotheses in zip(SOURCES["source"].tolist(), found, strict=True):
        expected = all_outputs(model, source, 4, length_penalty)[:5]
        assert [known.tokens for known in hypotheses] == [known.tokens for known in expected]
        assert [known.log_prob for known in hypotheses] == close([known.log_prob for known in expected])
        assert [known.score for known in hypotheses] == close([known.score for known in expected])
        assert all(known.ended for known in hypotheses)


def test_finds_what_greedy_search_misses(markov) -> None:
    # A looks better at first, but after it nothing is likely
    model = markov(
        {START: {A: 0.6, B: 0.4}, A: {END: 0.3, A: 0.3, B: 0.2, C: 0.2}, B: {END: 0.9, C: 0.1}}, vocabulary=7
    )
    assert greedy(model, ONE, LEARNED, 2)[0].tokens == [A]
    ((found,),) = beam(model, ONE, LEARNED, 2, width=2)
    assert found.tokens == [B]
    assert found.log_prob == pytest.approx(math.log(0.4 * 0.9), abs=1e-6)
    assert found.score == pytest.approx(math.log(0.4 * 0.9) / 2, abs=1e-6)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_of_one_is_greedy_search(scripted, length_penalty) -> None:
    model = scripted(vocabulary=11)
    inputs = {"source": torch.arange(23)}
    ends = set()
    for (found,), expected in zip(
        beam(model, inputs, LEARNED, 7, 1, 1, length_penalty, patience=1.0),
        greedy(model, inputs, LEARNED, 7),
        strict=True,
    ):
        assert (found.tokens, found.ended) == (expected.tokens, expected.ended)
        assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-6)
        ends.add(found.ended)
    assert ends == {True, False}


def test_every_hypothesis_is_scored_on_its_own_history(scripted) -> None:
    # logits depend on all tokens so far: a state reordered wrongly gives another log-probability
    model = scripted(vocabulary=13)
    for source, hypotheses in zip(SOURCES["source"].tolist(), beam(model, SOURCES, LEARNED, 9, 5, 5), strict=True):
        assert len(hypotheses) == 5
        for known in hypotheses:
            tokens = (*known.tokens, END) if known.ended else tuple(known.tokens)
            assert known.log_prob == close(model.log_prob(source, tokens))
        assert len({tuple(known.tokens) for known in hypotheses}) == 5


def test_an_example_is_searched_as_if_it_were_alone(scripted) -> None:
    model = scripted(vocabulary=13)
    longest = torch.tensor([3, 11, 7])
    together = beam(model, SOURCES, LEARNED, longest, 3, 2)
    for place, found in enumerate(together):
        alone = {"source": SOURCES["source"][place : place + 1]}
        assert beam(model, alone, LEARNED, longest[place : place + 1], 3, 2) == [found]


def test_one_row_an_example_at_first_then_width_rows_until_it_is_done(scripted) -> None:
    model = scripted(vocabulary=13)
    beam(model, SOURCES, LEARNED, torch.tensor([1, 2, 4]), 5, 5)
    assert model.rows == [3, 2 * 5, 5, 5]


def test_what_goes_on_keeps_its_row(scripted, monkeypatch) -> None:
    """A memory of many keys moves only the rows that change places, and examples that leave move but the last."""
    model, turns = scripted(vocabulary=14), []
    states = type(model.start(SOURCES["source"]))
    reorder = states.reorder
    monkeypatch.setattr(states, "reorder", lambda state, rows: (turns.append(rows.tolist()), reorder(state, rows)))
    beam(model, {"source": torch.arange(17)}, LEARNED, 12, 4, patience=1.0)
    first, *others = turns
    assert first == [example for example in range(17) for _ in range(4)]
    assert len({len(rows) for rows in others}) > 3
    assert all(rows[row] == row for rows in others for row in rows if row < len(rows))
    # Of four beams, some go on from another's beginning.
    assert any(rows != sorted(set(rows)) for rows in others)


def test_leaves_when_no_open_hypothesis_can_win(markov) -> None:
    # "A" has log 0.81 after two steps; "A C", still open, has log 0.09 and loses log 0.999 with each further step
    table = {START: {A: 0.9, B: 0.1}, A: {END: 0.9, C: 0.1}, B: {END: 1.0}, C: {C: 0.999, END: 0.001}}
    model = markov(table, vocabulary=7)
    # by log-probability it is beaten at once; by the mean, log 0.81 / 2 = -0.10536 is beyond log 0.09 / 22 but not
    # beyond log 0.09 / 23 = -0.10469, until 16 more steps have made that -0.10538
    for length_penalty, limit, steps in [(0.0, 60, 2), (1.0, 22, 2), (1.0, 23, 18), (1.0, 60, 60)]:
        model.rows.clear()
        ((found,),) = beam(model, ONE, LEARNED, limit, 2, 1, length_penalty, patience=None)
        assert found.tokens == [A]
        assert len(model.rows) == steps


def test_growth_says_how_far_an_open_hypothesis_is_followed(markov) -> None:
    # as above: "A C" at log 0.09 would win at 23 places only, while "A" has log 0.81 at two
    table = {START: {A: 0.9, B: 0.1}, A: {END: 0.9, C: 0.1}, B: {END: 1.0}, C: {C: 0.999, END: 0.001}}
    model = markov(table, vocabulary=7)
    for growth, steps in [(1.0, 2), (7.5, 2), (7.8, 18), (1e39, 18), (None, 18)]:  # 3 * 7.5 < 23 < 3 * 7.8
        model.rows.clear()
        ((found,),) = beam(model, ONE, LEARNED, 23, 2, 1, 1.0, growth=growth)
        assert found.tokens == [A]
        assert len(model.rows) == steps
    # an open one that is ahead goes on, however little it may grow
    model = markov({START: {END: 0.3, A: 0.7}, A: {END: 0.9, A: 0.1}}, vocabulary=7)
    assert beam(model, ONE, LEARNED, 9, 2, 1, 1.0, growth=1.0)[0][0].tokens == [A]


def test_with_a_negative_penalty_the_next_step_is_the_best_within_reach(markov) -> None:
    # log 0.2 after one step; "A" would reach 13 * log 0.8 < log 0.2 at the limit, but 2 * log 0.76 > log 0.2 at once
    model = markov({START: {END: 0.2, A: 0.8}, A: {END: 0.95, A: 0.05}}, vocabulary=7)
    ((found,),) = beam(model, ONE, LEARNED, 13, 2, 1, -1.0, patience=None)
    assert found.tokens == [A]
    assert found.score == pytest.approx(2 * math.log(0.76), abs=1e-5)


def test_an_end_among_the_best_costs_no_beam(markov) -> None:
    # END, A and B: the first has ended, so both others must stay open
    table = {START: {END: 0.4, A: 0.35, B: 0.25}, A: {A: 1.0}, B: {END: 1.0}}
    ((first, second),) = beam(markov(table, vocabulary=7), ONE, LEARNED, 5, width=2, n_best=2, length_penalty=0.0)
    assert (first.tokens, second.tokens) == ([], [B])


def test_patience_stops_once_enough_have_ended(markov) -> None:
    # from the second step on one hypothesis ends at each step, and the longer the better
    model = markov({START: {A: 1.0}, A: {END: 0.5, A: 0.5}}, vocabulary=7)
    for patience, steps in [(0.5, 3), (1.0, 4), (2.0, 7), (math.inf, 13), (None, 13)]:
        model.rows.clear()
        ((found,),) = beam(model, ONE, LEARNED, 13, 3, 1, 3.0, patience)
        assert len(model.rows) == steps
        assert found.tokens == [A] * (steps - 1)
    assert len(beam(model, ONE, LEARNED, 13, 3, 3, 3.0, patience=0.1)[0]) == 3


def test_only_missing_places_go_to_outputs_that_did_not_end(markov) -> None:
    model = markov({START: {A: 0.99, B: 0.01}, A: {A: 1.0}, B: {END: 1.0}}, vocabulary=7)
    ((first, second),) = beam(model, ONE, LEARNED, 3, width=2, n_best=2)
    assert (first.tokens, first.ended) == ([B], True)
    assert (second.tokens, second.ended) == ([A, A, A], False)
    assert second.log_prob == pytest.approx(math.log(0.99), abs=1e-6)
    assert second.score == pytest.approx(math.log(0.99) / 3, abs=1e-6)


def test_a_vocabulary_smaller_than_the_beam_gives_what_there_is(markov) -> None:
    model = markov({START: {A: 0.75, END: 0.25}, A: {END: 1.0}}, vocabulary=5)
    ((first, second),) = beam(model, ONE, LEARNED, 7, width=5, n_best=5, length_penalty=0.0)
    assert (first.tokens, second.tokens) == ([A], [])
    assert math.exp(second.log_prob) == pytest.approx(0.25)
    assert len(model.rows) == 2


def test_equal_scores_are_ordered_by_token(markov) -> None:
    model = markov({START: dict.fromkeys(range(END + 1, 997), 1 / 994)}, vocabulary=997)
    (found,) = beam(model, ONE, LEARNED, 2, width=3, n_best=3)
    assert [known.tokens for known in found] == [[4], [5], [6]]


def test_a_threshold_gives_up_what_is_much_less_likely_than_the_best(markov) -> None:
    # "A" and "B" differ by log 9 = 2.2; "B" would have won, after a certain END
    model = markov({START: {A: 0.9, B: 0.1}, A: {A: 0.95, END: 0.05}, B: {END: 1.0}}, vocabulary=7)
    for threshold, rows, tokens in [(None, [1, 2, 1], [B]), (2.3, [1, 2, 1], [B]), (2.1, [1, 1, 1], [A])]:
        model.rows.clear()
        ((found,),) = beam(model, ONE, LEARNED, 3, 2, 1, 0.0, threshold=threshold)
        assert (model.rows, found.tokens) == (rows, tokens)


def test_as_many_beginnings_go_on_as_outputs_are_wanted(markov) -> None:
    model = markov({START: {A: 0.9, B: 0.09, C: 0.01}}, vocabulary=7)
    ((*found,),) = beam(model, ONE, LEARNED, 3, 3, 2, threshold=1.0)
    assert [known.tokens for known in found] == [[A], [B]]
    assert model.rows == [1, 2]


@pytest.mark.parametrize("n_best", [1, 3])
def test_beams_of_unequal_width_are_scored_on_their_own_history(scripted, n_best) -> None:
    model, inputs = scripted(vocabulary=13), {"source": torch.arange(17)}
    found = beam(model, inputs, LEARNED, 9, 5, n_best, growth=1.2, threshold=1.0)
    assert any(count % 17 for count in model.rows[:3])
    for source, hypotheses in enumerate(found):
        for known in hypotheses:
            tokens = (*known.tokens, END) if known.ended else tuple(known.tokens)
            assert known.log_prob == close(model.log_prob(source, tokens))
        alone = beam(model, {"source": torch.tensor([source])}, LEARNED, 9, 5, n_best, growth=1.2, threshold=1.0)
        assert alone == [hypotheses]


def test_what_cannot_win_leaves_before_its_example(scripted) -> None:
    """And changes nothing: the rule of patience counts it, so that it stays."""
    rows, inputs = [], {"source": torch.arange(17)}
    for patience in (None, 1e9):
        model = scripted(vocabulary=13)
        rows.append((beam(model, inputs, LEARNED, 9, 5, 2, patience=patience), sum(model.rows)))
    (found, fewer), (expected, more) = rows
    assert found == expected
    assert fewer < more


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 3, "n_best": 4}, "from 1 to the beam width, 3; it is 4"),
        ({"width": 0}, "the width of a beam must be at least 1, not 0"),
        ({"patience": 0.0}, "patience must be greater than 0, not 0.0"),
        ({"length_penalty": math.nan}, "length_penalty must be from -4 to 4, not nan"),
        ({"length_penalty": 2000.0}, "length_penalty must be from -4 to 4, not 2000.0"),
        ({"growth": 0.9}, "growth must be at least 1, not 0.9"),
        ({"threshold": -0.1}, "threshold must be at least 0, not -0.1"),
        ({"threshold": math.nan}, "threshold must be at least 0, not nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(markov, settings, message) -> None:
    with pytest.raises(UserError, match=message):
        beam(markov({}, vocabulary=7), ONE, LEARNED, 5, **settings)
