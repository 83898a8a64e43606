"""Biases against their formulas, place by place, in every block."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import (
    Bias,
    Gaussian,
    LinearDistance,
    LinearGridDistance,
    RelativeGridKeys,
    RelativeGridPosition,
    RelativeKeys,
    RelativePosition,
)
from foveate.attention.biases import as_bias

H, T, S, D = 3, 7, 11, 5
SPANS = [(range(T), range(S)), (range(3), range(4, 9)), (range(6, 7), range(1))]


def near(distance: int, radius: int) -> int:
    return max(-radius, min(radius, distance))


def block(bias: Bias, queries: Tensor, rows: range, columns: range) -> Tensor:
    found = bias.block(queries[:, rows.start : rows.stop], rows, columns)
    return found.expand(H, len(rows), len(columns))


@pytest.mark.parametrize(("rows", "columns"), SPANS)
@pytest.mark.parametrize("sizes", [(H, T, S), (T, S), (H, 1, S), (H, T, 1), (S,)])
def test_given(sizes: tuple[int, ...], rows: range, columns: range) -> None:
    tensor = torch.randn(sizes)
    whole = tensor.expand(H, T, S)
    expected = whole[:, rows.start : rows.stop, columns.start : columns.stop]
    assert torch.equal(block(as_bias(tensor), torch.zeros(H, T, D), rows, columns), expected)


@pytest.mark.parametrize(("rows", "columns"), SPANS)
@pytest.mark.parametrize("start", [0, 4])
def test_linear_distance(start: int, rows: range, columns: range) -> None:
    slopes = torch.tensor([0.5, 0.25, 2])
    expected = [[[-slope * abs(start + i - j) for j in columns] for i in rows] for slope in slopes.tolist()]
    bias = LinearDistance(slopes, start)
    torch.testing.assert_close(block(bias, torch.zeros(H, T, D), rows, columns), torch.tensor(expected))


@pytest.mark.parametrize(("rows", "columns"), SPANS)
def test_gaussian(rows: range, columns: range) -> None:
    """The logarithm of a bell, as PyTorch's normal distribution has it, but for the constant that no softmax sees."""
    centres = torch.randn(H, T) * 4 + 5
    bell = torch.distributions.Normal(centres[:, rows.start : rows.stop, None], 1.7)
    expected = bell.log_prob(torch.arange(S)[columns.start : columns.stop].float()) - bell.log_prob(bell.mean)
    found = block(Gaussian(centres, 1.7), torch.zeros(H, T, D), rows, columns)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("rows", "columns"), SPANS)
def test_one_centre_for_all_queries(rows: range, columns: range) -> None:
    one = torch.randn(H, 1) + 5
    found = Gaussian(one, 1.7).block(torch.zeros(H, T, D), rows, columns).expand(H, len(rows), -1)
    assert torch.equal(found, Gaussian(one.expand(H, T), 1.7).block(torch.zeros(H, T, D), rows, columns))


def test_a_gaussian_pulls_its_centre_towards_what_is_wanted() -> None:
    """More weight on the key at 4 means a centre that moves right from 2 and left from 7.5."""
    centres = torch.tensor([2.0, 7.5], requires_grad=True)
    weights = Gaussian(centres, 2.0).block(torch.zeros(2, D), range(2), range(S)).softmax(-1)
    weights[:, 4].sum().backward()
    assert centres.grad[0] > 0.01
    assert centres.grad[1] < -0.01


def test_linear_distance_of_grouped_heads() -> None:
    slopes = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    found = LinearDistance(slopes).block(torch.zeros(T, D), range(2), range(3))
    assert found.shape == (3, 2, 2, 3)
    assert torch.equal(found[2, 1], -6 * torch.tensor([[0.0, 1, 2], [1, 0, 1]]))


@pytest.mark.parametrize(("rows", "columns"), SPANS)
def test_relative_position(rows: range, columns: range) -> None:
    bias = RelativePosition(H, 2)
    assert not bias.table.any()
    nn.init.normal_(bias.table)
    table = bias.table.tolist()
    expected = [[[table[h][near(j - i, 2) + 2] for j in columns] for i in rows] for h in range(H)]
    torch.testing.assert_close(block(bias, torch.zeros(H, T, D), rows, columns), torch.tensor(expected))


@pytest.mark.parametrize(("rows", "columns"), SPANS)
@pytest.mark.parametrize("scale", [None, 3.0])
def test_relative_keys(scale: float | None, rows: range, columns: range) -> None:
    bias, queries = RelativeKeys(D, 2, scale), torch.randn(H, T, D)
    factor = 5**-0.5 if scale is None else scale
    expected = torch.zeros(H, len(rows), len(columns))
    for h in range(H):
        for row, i in enumerate(rows):
            for column, j in enumerate(columns):
                expected[h, row, column] = factor * (queries[h, i] * bias.table[near(j - i, 2) + 2]).sum()
    torch.testing.assert_close(block(bias, queries, rows, columns), expected)


@pytest.mark.parametrize("kind", [lambda: RelativePosition(H, 2), lambda: RelativeKeys(D, 2)])
def test_a_learned_bias_for_later_queries(kind: Callable[[], Bias]) -> None:
    """Shares the parameters, and leaves the original where it was."""
    bias, queries = kind(), torch.randn(H, T, D)
    nn.init.normal_(bias.table)
    later = bias.with_start(3)
    torch.testing.assert_close(
        block(later, queries[:, 3:], range(T - 3), range(S)), block(bias, queries, range(3, T), range(S))
    )
    assert later.table is bias.table
    assert (bias.start, later.with_start(1).start) == (0, 1)


def test_what_a_bias_reads() -> None:
    position, keys, given = RelativePosition(H, 2), RelativeKeys(D, 2), torch.zeros(T, S)
    centres = torch.zeros(T)
    assert Gaussian(centres, 1.0).tensors()[0] is centres
    assert position.tensors()[0] is position.table
    assert keys.tensors()[0] is keys.table
    assert as_bias(given).tensors()[0] is given
    assert [bias.reads_queries for bias in (position, keys, as_bias(given))] == [False, True, False]


def test_what_is_no_bias_is_told() -> None:
    with pytest.raises(
        TypeError, match=r"^a bias holds floating-point numbers, not torch\.int64; to hide keys pass mask="
    ):
        as_bias(torch.zeros(T, S, dtype=torch.int64))


def test_half_precision_does_not_round_the_distance() -> None:
    """bfloat16 has no 257, and every fourth number from 512 on."""
    half, queries = torch.bfloat16, torch.zeros(1, D)
    assert LinearDistance(torch.ones(1, dtype=half)).block(queries, range(1), range(257, 258)).item() == -257
    bell = Gaussian(torch.tensor([516.0], dtype=half), 1.0).block(queries, range(1), range(513, 520))
    assert bell[0].tolist() == [-4.5, -2, -0.5, 0, -0.5, -2, -4.5]


GRID_SPANS = [(range(12), range(6)), (range(5, 11), range(2, 5))]
"""Spans of 12 queries, 3 rows and 4 columns, and of 6 keys, 3 rows and 2 columns."""


@pytest.mark.parametrize(("rows", "columns"), GRID_SPANS)
def test_relative_grid_position(rows: range, columns: range) -> None:
    """A number for each offset in rows and columns, up to two of either."""
    bias = RelativeGridPosition(H, 2)
    nn.init.normal_(bias.table)
    expected = [
        [bias.table[5 * (i // 4 - j // 2 + 2) + near(i % 4 - j % 2, 2) + 2].tolist() for j in columns] for i in rows
    ]
    found = block(bias.with_grids((3, 4), (3, 2)), torch.zeros(H, 12, D), rows, columns)
    torch.testing.assert_close(found, torch.tensor(expected).movedim(-1, 0))


@pytest.mark.parametrize(("rows", "columns"), GRID_SPANS)
def test_relative_grid_keys(rows: range, columns: range) -> None:
    """Columns are learned for four places and rows for three; two columns of queries lie over one of keys."""
    bias, queries = RelativeGridKeys(D, 4), torch.randn(H, 12, D)
    down = torch.nn.functional.interpolate(bias.rows.T[None], 5, mode="linear")[0].T
    expected = [
        [queries[:, i] @ (down[i // 4 - j // 2 + 2] + bias.columns[i % 4 - 2 * (j % 2) + 2]) for j in columns]
        for i in rows
    ]
    found = block(bias.with_grids((3, 4), (3, 2)), queries, rows, columns)
    torch.testing.assert_close(found, torch.stack([torch.stack(row, -1) for row in expected], -2))


def test_keys_finer_than_queries() -> None:
    """Offsets are counted in places of the finer grid; of a single row there is the middle of the table."""
    bias, queries = RelativeGridKeys(D, 6), torch.randn(H, 2, D)
    expected = [[queries[:, i] @ (bias.rows[5] + bias.columns[3 * i + 5 - j]) for j in range(6)] for i in range(2)]
    found = block(bias.with_grids((1, 2), (1, 6)), queries, range(2), range(6))
    torch.testing.assert_close(found, torch.stack([torch.stack(row, -1) for row in expected], -2))


def test_distances_in_a_grid_are_those_of_straight_lines() -> None:
    bias, device = LinearGridDistance(torch.tensor([1.0, 0.5]), start=2, columns=5), torch.zeros(1)
    found = bias.block(device, range(1, 9), range(3, 14))
    for query, key in itertools.product(range(1, 9), range(3, 14)):
        length = math.dist(divmod(query + 2, 5), divmod(key, 5))
        assert found[:, query - 1, key - 3].tolist() == pytest.approx([-length, -length / 2])
