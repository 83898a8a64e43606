"""Error rates, with edits counted by hand."""

import math

import pytest

from foveate.metrics.error_rates import edit_distance, error_rate


@pytest.mark.parametrize(
    ("found", "right", "edits"),
    [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2), ("flaw", "lawn", 2)],
)
def test_edit_distance(found, right, edits) -> None:
    assert edit_distance(found, right) == edits


def test_error_rate_counts_all_answers_together() -> None:
    assert error_rate(["sitting", "a"], ["kitten", "ab"]) == pytest.approx(100 * 4 / 8)
    assert error_rate([["the", "cat"]], [["the", "black", "cat", "sat"]]) == pytest.approx(50)
    assert error_rate([""], [""]) == 0
    assert math.isinf(error_rate(["a"], [""]))
