"""Groups of texts that are answered about together."""

import numpy as np

from foveate.data.ragged import Numbers, even_groups


def groups(lengths: Numbers, budget: int, at_once: int = 1) -> list[Numbers]:
    return even_groups(np.argsort(-lengths, kind="stable"), lengths, budget, at_once)


def places(lengths: Numbers, budget: int, at_once: int = 1) -> list[int]:
    """Those of each group, padding included."""
    return [len(group) * int(lengths[group].max()) for group in groups(lengths, budget, at_once)]


def test_groups_are_of_like_length() -> None:
    found = groups(np.array([3, 1, 5, 2, 2]), 6)
    assert [group.tolist() for group in found] == [[2], [0, 3], [4, 1]]
    assert groups(np.array([], np.int64), 6) == []


def test_a_text_longer_than_the_budget_comes_alone() -> None:
    assert [group.tolist() for group in groups(np.array([14, 2, 14]), 6)] == [[0], [2], [1]]


def test_groups_come_out_even_for_several_at_a_time() -> None:
    lengths = np.random.default_rng(1).integers(4, 31, 200)
    even, plain = places(lengths, 2000, 2), places(lengths, 2000)
    assert (len(plain), len(even)) == (3, 4)
    assert min(even) > 0.8 * max(even)
    assert min(plain) < 0.5 * max(plain)
    assert len(groups(lengths, 10_000, 4)) == 1, "one group is one"


def test_groups_keep_their_budget() -> None:
    lengths = np.random.default_rng(5).integers(2, 32, 997)
    found = groups(lengths, 307)
    assert sorted(row for group in found for row in group.tolist()) == list(range(997))
    assert max(places(lengths, 307)) <= 307
