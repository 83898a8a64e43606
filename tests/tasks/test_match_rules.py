"""The rules that a matcher is measured against."""

import pytest

from foveate.baselines.match_rules import ThresholdRule, fit, length_ratio, shared_triples
from foveate.data.text.match_pairs import Judged


def test_measures() -> None:
    assert length_ratio("abcd", "ab") == length_ratio("ab", "abcd") == 0.5
    assert length_ratio("", "") == 0
    assert shared_triples("Cat", "cat") == 1
    # " ca", "cat", "at " and " ca", "cab", "ab ": one of three and three
    assert shared_triples("cat", "cab") == pytest.approx(1 / 3)
    assert shared_triples("", "cat") == 0


def test_the_threshold_that_decides_most_pairs_rightly() -> None:
    ratios = [(0.9, True), (0.8, True), (0.7, False), (0.6, True), (0.4, False), (0.3, False)]
    pairs = [Judged("a" * 10, "b" * round(10 * ratio), right) for ratio, right in ratios]
    rule = fit("length ratio", pairs)
    assert rule == ThresholdRule("length ratio", 0.6)  # wrong only at 0.7, as is 0.8, which is higher
    assert rule.measure(pairs) == [ratio for ratio, _ in ratios]


def test_a_rule_that_finds_nothing_says_yes_to_all() -> None:
    pairs = [Judged("abc", "xyz", right) for right in (True, False)]
    assert fit("length ratio", pairs).threshold == 1
    assert fit("shared letter triples", pairs).threshold == 0
