"""Masks say what their definition says, in every block, and `reach` leaves out only what is hidden."""

from collections.abc import Callable

import pytest
import torch

from foveate.attention import Mask, around, by_rank, causal, grid_window, padding, same_text, segments, window
from foveate.attention.masks import as_mask

T, S = 7, 11
CPU = torch.device("cpu")
SPANS = [(range(T), range(S)), (range(3), range(4, 9)), (range(2, 7), range(1)), (range(6, 7), range(5, 11))]
CENTRES = [-3.0, 0.0, 2.5, 2.4, 9.0, 10.75, 14.0]
TEXTS = [0, 0, 1, 1, 1, 2, 2, 0, 1, 3, 3]
GIVEN = torch.rand(T, S, generator=torch.Generator().manual_seed(1)) < 0.5


def text(place: int, lengths: list[int]) -> int:
    """Which of the packed texts a place belongs to: counted one by one."""
    return [number for number, length in enumerate(lengths) for _ in range(length)][place]


CASES: dict[str, tuple[Mask, Callable[[int, int], bool]]] = {
    "causal": (causal(), lambda i, j: j <= i),
    "causal from 2": (causal(2), lambda i, j: j <= i + 2),
    "causal from -3": (causal(-3), lambda i, j: j <= i - 3),
    "window": (window(2), lambda i, j: abs(i - j) <= 2),
    "window of itself": (window(0), lambda i, j: i == j),
    "window from 5": (window(1, 5), lambda i, j: abs(i + 5 - j) <= 1),
    "window beyond the keys": (window(1, 20), lambda i, j: False),
    "around": (around(torch.tensor(CENTRES), 1.5), lambda i, j: abs(j - CENTRES[i]) <= 1.5),
    "around and causal": (
        around(torch.tensor(CENTRES), 2) & causal(),
        lambda i, j: j <= i and abs(j - CENTRES[i]) <= 2,
    ),
    "grid": (
        grid_window(1, 3),
        lambda i, j: abs(i // 3 - j // 3) <= 1 and abs(i % 3 - j % 3) <= 1,
    ),
    "grid after two tokens": (
        grid_window(1, 4, 2),
        lambda i, j: min(i, j) < 2 or (abs((i - 2) // 4 - (j - 2) // 4) <= 1 and abs((i - 2) % 4 - (j - 2) % 4) <= 1),
    ),
    "segments": (
        segments(torch.tensor([3, 4]), torch.tensor([6, 5])),
        lambda i, j: text(i, [3, 4]) == text(j, [6, 5]),
    ),
    "segments and a rest": (
        segments(torch.tensor([2, 3]), torch.tensor([4, 3])),
        lambda i, j: i < 5 and j < 7 and text(i, [2, 3]) == text(j, [4, 3]),
    ),
    "same text": (same_text(torch.tensor(TEXTS)), lambda i, j: TEXTS[i] == TEXTS[j]),
    "given": (as_mask(GIVEN), lambda i, j: bool(GIVEN[i, j])),
    "given for all queries": (as_mask(GIVEN[0]), lambda i, j: bool(GIVEN[0, j])),
    "given for all keys": (as_mask(GIVEN[:, :1]), lambda i, j: bool(GIVEN[i, 0])),
    "causal and window": (causal() & window(2), lambda i, j: i - 2 <= j <= i),
    "a tensor and causal": (GIVEN & causal(), lambda i, j: j <= i and bool(GIVEN[i, j])),
    "causal and a tensor": (causal() & GIVEN, lambda i, j: j <= i and bool(GIVEN[i, j])),
    "nothing is left": (causal() & window(1, 9), lambda i, j: False),
}


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize(("rows", "columns"), SPANS)
def test_blocks(case: str, rows: range, columns: range) -> None:
    mask, allowed = CASES[case]
    expected = torch.tensor([[allowed(i, j) for j in columns] for i in rows])
    assert torch.equal(mask.block(rows, columns, 0, CPU).expand(len(rows), len(columns)), expected)


@pytest.mark.parametrize("case", list(CASES))
def test_reach_leaves_out_only_what_is_hidden(case: str) -> None:
    mask, allowed = CASES[case]
    for start in range(T):
        for stop in range(start + 1, T + 1):
            reach = mask.reach(range(start, stop), S)
            seen = {j for i in range(start, stop) for j in range(S) if allowed(i, j)}
            assert seen <= set(reach)
            assert set(reach) <= set(range(S))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.startswith(("causal from", "window")) or case == "causal"]
)
def test_reach_of_causal_and_window_is_tight(case: str) -> None:
    mask, allowed = CASES[case]
    for start in range(T):
        for stop in range(start + 1, T + 1):
            seen = {j for i in range(start, stop) for j in range(S) if allowed(i, j)}
            assert set(mask.reach(range(start, stop), S)) == seen


@pytest.mark.parametrize("leading", [1, 2, 3])
def test_padding_hides_the_end_of_each_example(leading: int) -> None:
    lengths = [0, 4, S]
    mask = padding(torch.tensor(lengths))
    block = mask.block(range(2, 5), range(3, 9), leading, CPU)
    assert mask.shape(leading) == (3, *(1,) * (leading + 1))
    for example, length in enumerate(lengths):
        assert block[example].flatten().tolist() == [j < length for j in range(3, 9)]


def test_padding_of_two_leading_dimensions() -> None:
    lengths = torch.tensor([[1, 2, 3], [4, 0, 5]])
    block = padding(lengths).block(range(1), range(5), 3, CPU)
    assert block.shape == (2, 3, 1, 1, 5)
    assert torch.equal(block.sum(-1)[..., 0, 0], lengths)


def test_only_padding_is_alike_for_all_queries() -> None:
    some = padding(torch.tensor([3, 7]))
    assert not some.rowwise
    assert not (some & GIVEN[0]).rowwise
    assert (some & causal()).rowwise
    assert window(1).rowwise
    assert as_mask(GIVEN).rowwise


def test_joined_masks_broadcast() -> None:
    both = padding(torch.tensor([3, 9])) & causal()
    block = both.block(range(T), range(S), 2, CPU)
    expected = [[[j < n and j <= i for j in range(S)] for i in range(T)] for n in (3, 9)]
    assert torch.equal(block[:, 0], torch.tensor(expected))
    assert (padding(torch.tensor([3, 9])) & GIVEN).shape(2) == (2, 1, T, S)


def test_what_is_no_mask_is_told() -> None:
    with pytest.raises(
        TypeError, match=r"^a mask holds booleans \(True: may look\), not torch\.int64; to add numbers "
    ):
        causal() & torch.ones(T, S, dtype=torch.int64)


def test_each_example_around_its_own_centres() -> None:
    mask = around(torch.tensor([[0.0, 5.0], [3.5, 1.0]]), 1)
    assert mask.shape(1) == (2, 2, 1)
    seen = mask.block(range(2), range(7), 1, CPU)
    assert [[row.nonzero()[:, 0].tolist() for row in example] for example in seen] == [
        [[0, 1], [4, 5, 6]],
        [[3, 4], [0, 1, 2]],
    ]


def test_one_centre_for_all_queries() -> None:
    """Also for those of a later block."""
    seen = around(torch.tensor([5.0]), 1).block(range(128, 256), range(7), 0, CPU)
    assert seen.nonzero()[:, 1].unique().tolist() == [4, 5, 6]


def test_centres_in_half_precision_do_not_round_the_keys() -> None:
    """bfloat16 has every fourth number from 512 on."""
    seen = around(torch.tensor([516.0], dtype=torch.bfloat16), 3).block(range(1), range(1000), 0, CPU)
    assert seen[0].nonzero()[:, 0].tolist() == list(range(513, 520))


@pytest.mark.parametrize("leading", [1, 2, 3])
def test_ranks(leading: int) -> None:
    queries, keys = [[0, 3, 1], [2, 2, 0]], [[0, 1, 2, 3, 3], [2, 0, 1, 3, 2]]
    mask = by_rank(torch.tensor(queries), torch.tensor(keys))
    block = mask.block(range(1, 3), range(1, 5), leading, CPU)
    assert mask.shape(leading) == (2, *(1,) * (leading - 1), 3, 5)
    expected = [[[keys[b][j] <= queries[b][i] for j in range(1, 5)] for i in range(1, 3)] for b in range(2)]
    assert block.reshape(2, 2, 4).tolist() == expected
    assert block.ndim == leading + 2
