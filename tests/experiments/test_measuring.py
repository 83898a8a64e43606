"""Time, memory, operations and exponents of things whose cost is known."""

import time

import pytest
import torch
from torch import nn

from foveate.attention import attend, window
from foveate.experiments import measuring
from foveate.experiments.flops import flops
from foveate.experiments.measuring import exponent, memory, side_by_side


def test_runs_take_turns_and_medians_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = 0.0, []
    monkeypatch.setattr(time, "process_time", lambda: now)

    def lasting(name: str, *seconds: float):
        rest = iter(seconds)

        def run() -> None:
            nonlocal now
            order.append(name)
            now += next(rest)

        return run

    # the first two turns are for warming up and for counting
    found = side_by_side({"a": lasting("a", 9, 1, 5, 2, 3), "b": lasting("b", 9, 1, 7, 70, 6)}, repeats=3)
    assert found == {"a": 3, "b": 7}
    assert "".join(order) == "aabb" + "ab" * 3


def test_what_is_quick_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "process_time", lambda: now)
    calls = 0

    def run() -> None:
        nonlocal now, calls
        calls += 1
        now += measuring.SHORTEST / 4

    assert side_by_side({"run": run}, repeats=2)["run"] == pytest.approx(measuring.SHORTEST / 4)
    assert calls == 2 + 2 * 4


def filled(mebibytes: int):
    return lambda: torch.ones(mebibytes * 2**18).sum()


def test_memory_of_a_run() -> None:
    assert memory(filled, 37) == pytest.approx(37 * 2**20, abs=2**20)


def test_exponents() -> None:
    assert exponent([3, 6, 12], [5, 20, 80]) == pytest.approx(2)
    assert exponent([3, 7], [4, 4]) == pytest.approx(0)


def test_flops_of_products_and_convolutions() -> None:
    x = torch.randn(5, 7)
    assert flops(lambda: x @ torch.randn(7, 11)) == 2 * 5 * 7 * 11
    layer = nn.Conv1d(3, 5, 7, bias=False)
    assert flops(lambda: layer(torch.randn(1, 3, 17))) == 2 * 3 * 5 * 7 * 11


def test_flops_of_fused_attention() -> None:
    """Scores and sums are 2 T S D each; the backward pass has five such products."""
    q, k = torch.randn(1, 2, 11, 3, requires_grad=True), torch.randn(1, 2, 13, 3, requires_grad=True)
    product = 2 * 2 * 11 * 13 * 3
    assert flops(lambda: attend(q, k, k, kernel="sdpa")) == 2 * product
    assert flops(lambda: attend(q, k, k, kernel="sdpa").sum().backward()) == 7 * product


def test_flops_of_restricted_attention_are_those_of_what_it_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.attention.kernels.sdpa.BLOCK", 1024)
    x = torch.randn(1, 1, 512, 3)
    visited = flops(lambda: attend(x, x, x, mask=window(4), kernel="sdpa")) / (4 * 3)
    assert 512 * 9 - 2 * (1 + 2 + 3 + 4) <= visited < 512 * 512 / 10
