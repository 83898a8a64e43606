"""Measures of decisions, against numbers worked out by hand."""

import pytest

from foveate.metrics.classification import accuracy, macro_f1, roc_auc


def test_accuracy() -> None:
    assert accuracy(["a", "b", "b", "a"], ["a", "b", "a", "a"]) == 75
    assert accuracy([], []) == 0


def test_macro_f1() -> None:
    # a: 2 hits, 2 given, 3 wanted: 4/5; b: 1 hit, 2 given, 1 wanted: 2/3; c: never found: 0; d: only given, not a class
    found, right = ["a", "a", "b", "b", "d"], ["a", "a", "b", "a", "c"]
    assert macro_f1(found, right) == pytest.approx(100 * (4 / 5 + 2 / 3 + 0) / 3)
    assert macro_f1(["a"], ["a"]) == 100


def test_roc_auc() -> None:
    # of the six pairs of a positive and a negative, 0.9 beats all three, 0.4 beats one and ties with one
    scores, positive = [0.9, 0.4, 0.7, 0.4, 0.1], [True, True, False, False, False]
    assert roc_auc(scores, positive) == pytest.approx(100 * (3 + 1.5) / 6)
    assert roc_auc([1, 1, 1], [True, False, True]) == 50
    with pytest.raises(ValueError, match="2 positive and 0 negative examples"):
        roc_auc([1, 2], [True, True])
