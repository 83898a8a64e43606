"""The nearest of many vectors, and texts by their words."""

import math

import pytest
import torch

from foveate.baselines.nearest import nearest, nearest_by_words


def test_nearest_by_direction() -> None:
    """Length does not matter; a vector of zeros is near nothing."""
    vectors = torch.tensor([[10.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, 0.0]])
    rows, cosines = nearest(torch.tensor([[2.0, 1.0], [0.0, 0.0]]), vectors, 2)
    assert rows[0].tolist() == [2, 0]
    torch.testing.assert_close(cosines[0], torch.tensor([3 / math.sqrt(10), 2 / math.sqrt(5)]))
    assert cosines[1].tolist() == [0, 0]
    assert nearest(vectors[:1], vectors[:2], 7)[0].tolist() == [[0, 1]]


def test_rare_words_weigh_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Token 0 is in all known texts and weighs nothing; 1 is in two of four, log(5 / 3); 2 in one, log(5 / 2).

    The first query's cosine with (0, 1, 2) is 0.866, with (0, 1, 1) 0.858; with equal weights, 0.894 and 0.949.
    """
    known = [[0, 0, 3], [0, 1, 1], [0, 1, 2], [0]]
    queries = [[1, 1, 1, 2], [2], [3, 0, 0, 0], [1, 0]]
    for at_once in (1, 3, 100):
        monkeypatch.setattr("foveate.baselines.nearest.AT_ONCE", at_once)
        assert nearest_by_words(queries, known, 5).tolist() == [2, 2, 0, 1]
