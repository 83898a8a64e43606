"""Intervals and chances against what is known of simple cases."""

from collections.abc import Sequence

import numpy as np
import pytest

from foveate.metrics import resampling
from foveate.metrics.resampling import Measured, compare_by_resampling, over_seeds
from foveate.metrics.translation import ResampledQuality, quality


def right(values: np.ndarray) -> Measured:
    """The share of ones."""
    return Measured(len(values), lambda rows: {"accuracy": 100 * float(values[np.fromiter(rows, np.int64)].mean())})


def test_an_interval_is_as_wide_as_that_of_a_share() -> None:
    """Of 400 examples with 70 % right: 1.96 standard errors on either side."""
    values = (np.arange(400) % 10 < 7).astype(float)
    found = compare_by_resampling([right(values)], "accuracy")
    error = 100 * (0.7 * 0.3 / 400) ** 0.5
    value, low, high = found.figures[0]
    assert value == pytest.approx(70)
    assert (low, high) == pytest.approx((70 - 1.96 * error, 70 + 1.96 * error), abs=0.6)


def test_a_pair_is_surer_than_its_parts() -> None:
    """One is right wherever the other is, and sometimes more: no doubt, though the intervals overlap."""
    first = (np.arange(300) % 10 < 6).astype(float)
    second = np.maximum(first, np.arange(300) % 20 == 7)
    found = compare_by_resampling([right(first), right(second), right(first)], "accuracy")
    assert found.figures[0].high > found.figures[1].low
    assert found.differences[1].value == pytest.approx(5)
    assert found.differences[1].low > 0
    assert found.chances[1] < 0.01
    assert (found.differences[2].value, found.chances[0], found.chances[2]) == (0, 1, 1)


@pytest.mark.parametrize("share", [0, 1])
def test_draws_without_a_figure_are_no_draws(share: int) -> None:
    """A metric that is undefined for half of the draws, or for all, makes a difference no surer."""
    generator = np.random.default_rng(5)
    pair = [right(row) for row in generator.integers(0, 2, (2, 40)).astype(float)]

    def sometimes(one: Measured) -> Measured:
        known = lambda rows: isinstance(rows, range) or sum(rows) % 2 < share  # noqa: E731
        return Measured(40, lambda rows: one.metrics(rows) if known(rows) else {})

    found = compare_by_resampling([*map(sometimes, pair)], "accuracy").chances[1]
    assert found == pytest.approx(compare_by_resampling(pair, "accuracy").chances[1] if share else 1, abs=0.1)


def test_differences_by_chance_are_seldom_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that guess: p is below 0.05 in about one of 20 cases."""
    monkeypatch.setattr(resampling, "MOST_DRAWS", 300)
    generator = np.random.default_rng(4)
    guesses = generator.integers(0, 2, (200, 2, 60)).astype(float)
    chances = [compare_by_resampling([*map(right, pair)], "accuracy").chances[1] for pair in guesses]
    assert 0.01 <= np.mean(np.array(chances) < 0.05) <= 0.09


@pytest.mark.parametrize("rows", [range(6), (0, 0, 3, 5), (2, 1, 1, 1, 4)])
def test_words_that_are_counted_once_give_the_bleu_of_any_sentences(rows: Sequence[int]) -> None:
    texts = [
        f"the {word} dog saw a red cat in the garden {word}" for word in ("old", "big", "new", "wet", "sad", "odd")
    ]
    wanted = [text.replace("red", "blue" if place % 2 else "red") for place, text in enumerate(texts)]
    found = ResampledQuality(texts, wanted)(rows)
    whole = quality([texts[row] for row in rows], [wanted[row] for row in rows])
    assert (found["bleu"], found["chrf"]) == pytest.approx((whole.bleu, whole.chrf))


def test_few_seeds_have_a_wide_interval() -> None:
    """Student's t of two degrees of freedom."""
    value, low, high = over_seeds([70.0, 72.0, 71.0])
    assert (value, low, high) == pytest.approx((71, 71 - 4.303 / 3**0.5, 71 + 4.303 / 3**0.5))
    assert np.isnan(over_seeds([70.0]).low)
