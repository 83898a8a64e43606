"""The weights of a call and all measures of them, against dense weights in double precision."""

import math

import pytest
import torch
from calls import CALLS, dense, make
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from foveate.attention import Additive, ScaledDot, Soft, attend_full, causal, window
from foveate.attention.call import Call
from foveate.errors import UserError
from foveate.sight import blocks
from foveate.sight.measures import (
    MEASURES,
    Distance,
    Entropy,
    Max,
    Pooled,
    Propagation,
    Received,
    TopKeys,
    check_names,
    measure,
    resolve_choice,
    weights,
)
from foveate.sight.query_measures import largest

NEAR = {"atol": 2e-6, "rtol": 1e-5}


@pytest.fixture(params=[True, False], ids=["small blocks", "one block"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 5 rows and 2 heads, or of everything."""
    if request.param:
        monkeypatch.setattr(blocks, "BLOCK", 23 * 5 * 2)
        monkeypatch.setattr(blocks, "HEIGHT", 5)


def close(found: Tensor, exact: Tensor) -> None:
    assert found.dtype == torch.float32
    assert not found.requires_grad
    torch.testing.assert_close(found.double(), exact, **NEAR)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("name", CALLS)
def test_weights(name: str) -> None:
    call = CALLS[name]()
    exact = dense(call)
    close(weights(call), exact)
    heads, rows = exact.shape[1], exact.shape[2]
    close(weights(call, heads=[heads - 1]), exact[:, [heads - 1]])
    if rows > 1:
        chosen, keys = [17, 3, 4, -1, 4], [exact.shape[3] - 1, 0]
        close(weights(call, [0, -1], chosen, keys), exact[:, [0, -1]][:, :, chosen][..., keys])
        close(weights(call, slice(1, None), slice(2, 13), slice(0, 7)), exact[:, 1:, 2:13, :7])


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("name", CALLS)
def test_every_measure_in_one_pass(name: str) -> None:
    call = CALLS[name]()
    exact = dense(call)
    batch, _, rows, keys = exact.shape
    shares = torch.rand(batch, 7, rows)
    asked = [Received(), Max(), Entropy(), Distance(3), Pooled(4, 3), Propagation(shares), TopKeys(6)]
    received, most, entropy, distance, pooled, carried, top = measure(call, asked)
    total = exact.sum(-1)
    close(received, exact.sum(-2))
    close(most, exact.amax(-1))
    sink = torch.zeros_like(total) if call.select.sinks is None else 1 - total
    close(entropy, -torch.xlogy(exact, exact).sum(-1) - torch.xlogy(sink, sink))
    far = (torch.arange(rows)[:, None] + 3 - torch.arange(keys)).abs()
    close(distance, (exact * far).sum(-1) / total.clamp(min=1e-300))
    close(pooled, pooled_by_loops(exact, min(4, rows), min(3, keys)))
    close(carried, shares.double() @ exact.mean(1))
    values = exact.topk(min(6, keys)).values
    close(top.weights[..., : min(6, keys)], values)
    assert top.weights.shape == top.keys.shape == (*exact.shape[:-1], 6)
    looked = top.keys >= 0
    assert torch.equal(looked, top.weights > 0)
    close(top.weights, exact.gather(-1, top.keys.clamp(min=0)) * looked)
    for row in top.keys.flatten(0, -2).tolist():
        assert len({key for key in row if key >= 0}) == sum(key >= 0 for key in row)


def pooled_by_loops(exact: Tensor, rows: int, columns: int) -> Tensor:
    count, total = exact.shape[2:]
    over, along = ([n * size // parts for n in range(parts + 1)] for size, parts in ((count, rows), (total, columns)))
    found = torch.zeros(*exact.shape[:2], rows, columns, dtype=torch.float64)
    for i in range(rows):
        for j in range(columns):
            found[..., i, j] = exact[..., over[i] : over[i + 1], along[j] : along[j + 1]].sum(-1).mean(-1)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_sums(name: str) -> None:
    """A row sums to 1, or to 0 if it may look nowhere, and less than 1 where there is a sink; columns to all rows."""
    call = CALLS[name]()
    received, pooled = measure(call, [Received(), Pooled(5, 7)])
    rows = weights(call).sum(-1)
    torch.testing.assert_close(received.sum(-1), rows.sum(-1))
    assert pooled.isfinite().all()
    if call.select.sinks is None:
        nowhere = rows == 0
        torch.testing.assert_close(rows, 1 - nowhere.float())
        cells = pooled.sum(-1)
        torch.testing.assert_close(cells[cells > 0.999], torch.ones_like(cells[cells > 0.999]))
    else:
        assert ((rows >= 0) & (rows < 1)).all()


def test_rows_that_may_look_nowhere_are_zeros() -> None:
    call = make(mask=causal(-7))
    found = weights(call)
    assert not found[:, :, :7].any()
    top, entropy, distance = measure(call, [TopKeys(3), Entropy(), Distance()])
    assert (top.keys[:, :, :7] == -1).all()
    assert top.keys[0, 0, 7].tolist() == [0, -1, -1]
    assert not entropy[:, :, :8].any()
    assert distance[0, 0, 5:8].tolist() == [0, 0, 7]


def test_where_a_bias_hides_all_alike_all_is_looked_at() -> None:
    """As the eager softmax has it: the least number for every key is the same number for every key."""
    row = weights(CALLS["bias of the least number"]())[:, :, -1]
    torch.testing.assert_close(row, torch.full_like(row, 1 / 23))
    assert not weights(CALLS["bias of -inf"]())[:, :, -1].any()


def test_weights_are_those_that_made_the_output() -> None:
    call = make(mask=causal(2), bias=torch.randn(19, 23), sinks=torch.randn(3))
    values = torch.randn(2, 3, 23, 7)
    with torch.no_grad():
        output = attend_full(
            call.queries, call.keys, values, mask=call.mask, bias=call.bias, select=Soft(call.select.sinks)
        ).output
    torch.testing.assert_close(weights(call) @ values, output)


def test_received_is_exact_over_many_rows() -> None:
    call = make(((1, 2, 1999, 7), (1, 2, 1999, 7)), mask=causal())
    (received,) = measure(call, [Received()])
    exact = dense(call).sum(-2)
    assert ((received - exact).abs() / exact).max() < 1e-5


def test_autocast_changes_nothing() -> None:
    call = make(mask=causal(), score=Additive(5, 5, 7, torch.relu))
    expected = weights(call)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(weights(call), expected)


def test_what_autocast_left_in_two_types() -> None:
    """Queries and keys are in half precision then, what the score holds is not."""
    call = make(score=Additive(5, 5, 7, torch.relu))
    call.queries, call.keys = call.queries.bfloat16(), call.keys.bfloat16()
    torch.testing.assert_close(weights(call).double(), dense(call), **NEAR)


def test_only_the_chosen_heads_and_rows_are_computed() -> None:
    call = make(((1, 5, 211, 7), (1, 5, 223, 7)))
    with FlopCounterMode(display=False) as counter:
        weights(call, heads=[3, 1], queries=[200, 3, 77])
    assert counter.get_total_flops() == 2 * 2 * 3 * 223 * 7


def test_causality_saves_half() -> None:
    call = make(((1, 5, 1024, 7), (1, 5, 1024, 7)), mask=causal())
    with FlopCounterMode(display=False) as counter:
        measure(call, [Received(), Max()])
    assert counter.get_total_flops() < 0.6 * 2 * 5 * 1024 * 1024 * 7


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest tensor has that is made inside."""

    numbers = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        made = [result] if isinstance(result, Tensor) else result if isinstance(result, tuple) else []
        self.numbers = max(
            [self.numbers, *(part.untyped_storage().nbytes() // 4 for part in made if isinstance(part, Tensor))]
        )
        return result


@pytest.mark.parametrize("mask", [None, causal(), window(700)])
def test_memory_is_linear(mask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a measure makes is larger than a block."""
    monkeypatch.setattr(blocks, "BLOCK", 2**14)
    call = make(((1, 2, 1499, 2), (1, 2, 1511, 2)), mask=mask)
    with Largest() as largest_made:
        measure(call, [Received(), Entropy(), TopKeys(4), Pooled(16, 16), Distance()])
    assert largest_made.numbers <= 2 * 2**14  # places are numbers of twice the size


@pytest.mark.parametrize("k", [1, 3, 8, 50, 400])
@pytest.mark.parametrize("order", ["random", "rising", "falling"])
def test_largest(k: int, order: str) -> None:
    rows = torch.rand(3, 5, 307)
    if order != "random":
        rows = rows.sort(descending=order == "falling").values
    found, places = largest(rows, k)
    assert torch.equal(found, rows.sort(descending=True).values[..., :k])
    assert torch.equal(rows.gather(-1, places), found)


def test_entropy_by_hand() -> None:
    """Of n keys alike it is log n; a sink is one more place."""
    call = Call(
        torch.zeros(7, 3), torch.randn(11, 3), torch.zeros(11, 0), ScaledDot(), causal(), None, Soft(), 0.0, False
    )
    (entropy,) = measure(call, [Entropy()])
    assert entropy[0, 0].tolist() == pytest.approx([math.log(n) for n in range(1, 8)], abs=1e-6)
    call.select = Soft(torch.zeros(()))
    (entropy,) = measure(call, [Entropy()])
    assert entropy[0, 0].tolist() == pytest.approx([math.log(n + 1) for n in range(1, 8)], abs=1e-6)


@pytest.mark.parametrize(
    "shapes", [((2, 3, 0, 5), (2, 3, 7, 5)), ((2, 3, 7, 5), (2, 3, 0, 5)), ((0, 3, 7, 5), (0, 3, 7, 5))]
)
def test_nothing_to_look_at(shapes) -> None:
    call = make(shapes)
    batch, heads, rows, keys = shapes[0][0], 3, shapes[0][2], shapes[1][2]
    assert weights(call).shape == (batch, heads, rows, keys)
    received, top, pooled = measure(call, [Received(), TopKeys(2), Pooled()])
    assert received.shape == (batch, heads, keys)
    assert not received.any()
    assert (top.keys == -1).all()
    assert pooled.shape == (batch, heads, rows, keys)


def test_no_heads_are_no_weights() -> None:
    assert weights(make(), heads=[]).shape == (2, 0, 19, 23)


def test_a_place_that_there_is_not() -> None:
    with pytest.raises(UserError, match="there is no position 19 among 19: they are 0 to 18"):
        weights(make(), queries=[19])


def test_places_that_are_neighbours_are_not_listed_one_by_one() -> None:
    assert resolve_choice(slice(None), 10**15) == range(10**15)
    assert resolve_choice(slice(-7, -2), 10**15) == range(10**15 - 7, 10**15 - 2)
    assert (resolve_choice(slice(5, 2), 9), resolve_choice(slice(1, 9, 3), 9)) == (range(0), [1, 4, 7])


def test_names() -> None:
    assert check_names("received") == ["received"]
    assert check_names(["top", "other"], ["other"]) == ["top", "other"]
    with pytest.raises(UserError, match=r"^unknown measure 'recieved'; did you mean received\?$"):
        check_names(["top", "recieved"])
    found, expected = measure(make(), [MEASURES["distance"](3), Distance(3)])
    assert torch.equal(found, expected)
