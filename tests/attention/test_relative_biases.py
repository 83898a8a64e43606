"""The biases of Transformer-XL and XLNet, pair by pair, and their gradients in blocks."""

import itertools

import pytest
import torch
from torch import Tensor

from foveate.attention import (
    Bias,
    BucketedPosition,
    Disentangled,
    Distances,
    RelativeEncoding,
    SegmentEncoding,
    attend,
    by_rank,
    padding,
)
from foveate.attention.kernels import blocked

B, H, T, S, D = 2, 3, 5, 7, 11
PLACES = torch.tensor([[6, 0, 3, 3, 1], [2, 5, 4, 0, 6]])
QUERY_SEGMENTS, KEY_SEGMENTS = torch.tensor([[0, 1, 1, 0, 2], [1] * 5]), torch.tensor([[0, 0, 1, 1, 2, 2, 3], [1] * 7])


def tensors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, vectors of distances, an offset, and vectors of segments."""
    shapes = (B, H, T, D), (H, 2 * S - 1, D), (H, 1, D), (H, 2, D)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)  # type: ignore


@pytest.mark.parametrize("places", [None, PLACES], ids=["in order", "anywhere"])
@pytest.mark.parametrize(
    ("rows", "columns"), [(range(T), range(S)), (range(1, 4), range(2, 4)), (range(4, 5), range(1))]
)
def test_relative_encoding(places: Tensor | None, rows: range, columns: range) -> None:
    queries, vectors, offset, _ = tensors()
    found = RelativeEncoding(vectors, offset, 0.5, places).block(queries[:, :, rows.start : rows.stop], rows, columns)
    for b, h, i, j in itertools.product(range(B), range(H), rows, columns):
        place = i if places is None else int(places[b, i])
        expected = 0.5 * (queries[b, h, i] + offset[h, 0]) @ vectors[h, j - place + S - 1]
        torch.testing.assert_close(found[b, h, i - rows.start, j - columns.start], expected)


def test_one_query_and_one_key() -> None:
    queries, offset, vector = torch.randn(1, 1, 1, 3), torch.randn(1, 1, 3), torch.randn(1, 1, 3)
    found = RelativeEncoding(vector, offset, 1.0).block(queries, range(1), range(1))
    torch.testing.assert_close(found[0, 0, 0, 0], (queries[0, 0, 0] + offset[0, 0]) @ vector[0, 0])


def test_segment_encoding() -> None:
    queries, _, offset, vectors = tensors()
    bias = SegmentEncoding(vectors, offset, 0.5, QUERY_SEGMENTS, KEY_SEGMENTS)
    found = bias.block(queries[:, :, 1:4], range(1, 4), range(2, 7))
    for b, h, i, j in itertools.product(range(B), range(H), range(1, 4), range(2, 7)):
        other = int(QUERY_SEGMENTS[b, i] != KEY_SEGMENTS[b, j])
        expected = 0.5 * (queries[b, h, i] + offset[h, 0]) @ vectors[h, other]
        torch.testing.assert_close(found[b, h, i - 1, j - 2], expected)


@pytest.mark.parametrize("places", [None, PLACES], ids=["in order", "anywhere"])
def test_blocks_have_the_gradients_of_the_whole(places: Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through tensors that are computed, as the vectors of distances are."""
    monkeypatch.setattr(blocked, "BLOCK", 30)
    queries, vectors, offset, segments = tensors()
    keys, values = (torch.randn(B, H, S, D, dtype=torch.float64, requires_grad=True) for _ in range(2))
    ranks = (
        torch.tensor([[2, 0, 1, 1, 3], [1, 2, 4, 0, 0]]),
        torch.tensor([[0, 1, 2, 3, 0, 1, 2], [4, 3, 2, 1, 3, 2, 1]]),
    )
    mask = by_rank(*ranks) & padding(torch.tensor([7, 6]))
    weights = torch.randn(B, H, T, D, dtype=torch.float64)
    found = {}
    for kernel in ("eager", "blocked"):
        bias: Bias = RelativeEncoding(vectors * 2, offset + 1, 0.3, places)
        bias = bias + SegmentEncoding(segments * 2, offset - 1, 0.3, QUERY_SEGMENTS, KEY_SEGMENTS)
        output = attend(queries, keys, values, mask=mask, bias=bias, kernel=kernel)
        learned = (queries, keys, values, vectors, offset, segments)
        found[kernel] = (output, *torch.autograd.grad((output * weights).sum(), learned))
    for one, other in zip(*found.values(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_sum_has_the_shape_and_the_tensors_of_its_parts() -> None:
    _, vectors, offset, segments = tensors()
    both = RelativeEncoding(vectors, offset, 1.0) + SegmentEncoding(segments, offset, 1.0, QUERY_SEGMENTS, KEY_SEGMENTS)
    assert both.shape() == (B, H, T, S)
    assert both.reads_queries
    assert len(both.tensors()) == 6
    assert (RelativeEncoding(vectors, offset, 1.0) + torch.zeros(T, S)).shape() == (H, T, S)


def test_buckets_of_distances() -> None:
    """Eight of them: half are of later keys, and of each half the first two hold one distance each."""
    bias = BucketedPosition(1, 8, 16, both_sides=True)
    bias.table.data = torch.arange(8.0)[None]
    found = bias.block(torch.zeros(1, 1, 40, 3), range(40), range(40))[0]
    assert found[20, 20:].int().tolist() == [0, 5, 6, 6, 6, 6, *[7] * 14]
    assert found[20, :21].flip(0).int().tolist() == [0, 1, 2, 2, 2, 2, *[3] * 15]


def test_vectors_of_distances() -> None:
    """Those beyond half share vectors in buckets; without an end of these, all beyond the last have its vector."""
    distances = torch.tensor([-40, -9, -5, -3, 0, 2, 3, 4, 5, 9, 15, 40])
    assert Distances(6)(distances).tolist() == [0, 0, 1, 3, 6, 8, 9, 10, 11, 11, 11, 11]
    assert Distances(6, 16)(distances).tolist() == [0, 1, 2, 3, 6, 8, 9, 10, 10, 11, 11, 11]


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("parts", [("p",), ("r",), ("p", "r")], ids="".join)
def test_disentangled_products(parts: tuple[str, ...], start: int) -> None:
    distances = Distances(2)
    queries, keys = torch.randn(B, H, T, D, dtype=torch.float64), torch.randn(B, H, S, D, dtype=torch.float64)
    positions, asked = torch.randn(2, H, 4, D, dtype=torch.float64)
    own = {"positions": positions if "p" in parts else None, "asked": asked if "r" in parts else None}
    bias = Disentangled(distances, 0.5, keys=keys, start=start, **own)
    found = bias.block(queries[:, :, 1:4], range(1, 4), range(2, 7))
    for b, h, i, j in itertools.product(range(B), range(H), range(1, 4), range(2, 7)):
        at = max(0, min(3, start + i - j + 2))
        expected = torch.zeros((), dtype=torch.float64)
        if "p" in parts:
            expected = expected + queries[b, h, i] @ positions[h, at]
        if "r" in parts:
            expected = expected + keys[b, h, j] @ asked[h, at]
        torch.testing.assert_close(found[b, h, i - 1, j - 2], 0.5 * expected)


def test_disentangled_products_have_the_gradients_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "BLOCK", 30)
    given = [torch.randn(B, H, size, D, dtype=torch.float64, requires_grad=True) for size in (T, S, S)]
    vectors = [torch.randn(H, 4, D, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    queries, keys, values = given
    results = []
    for kernel in ("eager", "blocked"):
        bias = Disentangled(Distances(2), 0.5, vectors[0], keys, vectors[1])
        output = attend(queries, keys, values, mask=padding(torch.tensor([S, 4])[:, None]), bias=bias, kernel=kernel)
        results.append([output, *torch.autograd.grad(output.square().sum(), [*given, *vectors])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)
