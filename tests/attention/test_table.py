"""Which kernel computes what, that it says so when it cannot, and that no choice falls to T x S memory unseen."""

import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from grid import BIASES, MASKS, every, problem, solve
from torch.nn.attention import SDPBackend

from foveate.attention import (
    Additive,
    Biaffine,
    Dot,
    Hard,
    LinearDistance,
    Monotonic,
    RelativeKeys,
    RelativePosition,
    ScaledDot,
    Soft,
    SoftCapped,
    attend,
    attend_full,
    causal,
    intercept,
    padding,
    window,
)
from foveate.attention.call import Call
from foveate.attention.kernels import LARGE, TABLE, choose, sdpa


def draw(*shape: int, learning: bool = False) -> torch.Tensor:
    return torch.randn(shape, requires_grad=learning)


def chosen(
    full: bool = False, t: int = 7, s: int = 31, v: int = 5, heads: int = 3, learning: bool = True, **call
) -> str:
    """The name of the kernel that the table chooses."""
    names = []
    parts = [draw(2, heads, size, width, learning=learning) for size, width in ((t, 5), (s, 5), (s, v))]
    with intercept(lambda call, kernel: (names.append(kernel.name), kernel.attend(call))[1]):
        (attend_full if full else attend)(*parts, **call)
    return names[0]


LARGE_BLOCK = {"t": 1499, "s": 1409}
"""Times two examples, more scores than LARGE: 4.2 million."""


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        ({}, "sdpa"),
        ({"score": Dot()}, "sdpa"),
        ({"score": ScaledDot(0.3)}, "sdpa"),
        ({"score": Biaffine(5, 5)}, "sdpa"),
        ({"mask": causal()}, "sdpa"),
        ({"mask": causal(2) & padding(torch.tensor([3, 11]))}, "sdpa"),
        ({"mask": window(2)}, "sdpa"),
        ({"bias": torch.zeros(7, 31)}, "sdpa"),
        ({"bias": LinearDistance(torch.ones(3))}, "sdpa"),
        ({"learning": False}, "few"),
        ({"learning": False, "mask": causal(4), "bias": torch.zeros(7, 31), "full": True, "v": 3}, "few"),
        ({"learning": False, "t": 9}, "sdpa"),
        ({"s": 24, "t": 9}, "few"),
        ({"s": 24, "t": 9, "mask": causal(15), "bias": torch.zeros(9, 24), "v": 3}, "few"),
        ({"s": 25, "t": 9}, "sdpa"),
        ({"s": 24, "t": 9, "bias": torch.zeros(9, 24, requires_grad=True)}, "eager"),
        ({"learning": False, "select": Soft(torch.zeros(3))}, "eager"),
        ({"full": True, "learning": False, "t": 9}, "sdpa"),
        ({"heads": 1, **LARGE_BLOCK}, "sdpa"),
        ({"heads": 1, **LARGE_BLOCK, "mask": window(5), "bias": torch.zeros(1)}, "sdpa"),
        ({"full": True}, "eager"),
        ({"v": 3}, "eager"),
        ({"dropout": 0.1}, "eager"),
        ({"score": Additive(5, 5, 3)}, "eager"),
        ({"bias": torch.zeros(7, 31, requires_grad=True)}, "eager"),
        ({"bias": RelativePosition(3, 2)}, "eager"),
        ({"bias": RelativeKeys(5, 2)}, "eager"),
        ({"select": Hard()}, "eager"),
        ({"select": Soft(torch.zeros(3))}, "eager"),
        ({"score": SoftCapped(ScaledDot(), 50.0)}, "eager"),
        ({"score": SoftCapped(ScaledDot(), 50.0), **LARGE_BLOCK, "heads": 1}, "blocked"),
        ({"full": True, **LARGE_BLOCK, "heads": 1}, "blocked"),
        ({"v": 3, **LARGE_BLOCK, "heads": 1}, "blocked"),
        ({"dropout": 0.1, **LARGE_BLOCK, "heads": 1}, "blocked"),
        ({"score": Additive(5, 5, 103), "t": 101, "s": 103, "heads": 2}, "blocked"),
        ({"bias": RelativePosition(1, 2), **LARGE_BLOCK, "heads": 1}, "blocked"),
        ({"score": Additive(5, 5, 1009), "t": 1, "s": 499, "heads": 5}, "eager"),
    ],
)
def test_the_kernel_chosen(call, kernel):
    assert chosen(**call) == kernel


def test_keys_that_are_few_but_wide_are_not_few():
    """What counts then is the time of copying them."""
    queries, keys = draw(2, 9, 60, learning=True), draw(2, 24, 60)
    names = []
    with intercept(lambda call, kernel: (names.append(kernel.name), kernel.attend(call))[1]):
        attend(queries, keys, keys)
        attend(queries, keys[:, :17], keys[:, :17])
    assert names == ["sdpa", "few"]


def test_keys_that_lie_across_are_not_copied_for_twice_as_many_queries():
    keys, values, names = draw(2, 5, 31).mT, draw(2, 31, 5), []
    with intercept(lambda call, kernel: (names.append(kernel.name), kernel.attend(call))[1]):
        for queries in (16, 17):
            attend(draw(2, queries, 5), keys, values)
    assert names == ["few", "sdpa"]


def test_without_gradients_a_learned_bias_is_only_a_bias():
    with torch.no_grad():
        assert chosen(bias=RelativePosition(3, 2), t=9) == "sdpa"
        assert chosen(bias=RelativeKeys(5, 2), t=9) == "sdpa"


def test_half_precision_is_not_left_to_the_kernel_for_few_queries_but_with_gradients():
    parts = [draw(2, 3, 5).to(torch.bfloat16) for _ in range(3)]
    names = []
    with intercept(lambda call, kernel: (names.append(kernel.name), kernel.attend(call))[1]):
        attend(*parts)
        with torch.autocast("cpu"):
            attend(*(part.float() for part in parts))
            attend(*(part.float().requires_grad_() for part in parts))
        attend(*(part.requires_grad_() for part in parts))
    assert names == ["sdpa", "sdpa", "few", "few"]


def test_with_gradients_half_precision_is_computed_in_single():
    """Then the result is the exact one, rounded once."""
    parts = [draw(2, 3, 5).to(torch.bfloat16).requires_grad_() for _ in range(3)]
    exact = attend(*(part.float() for part in parts), kernel="eager")
    output = attend(*parts, kernel="few")
    assert torch.equal(output, exact.bfloat16())
    with torch.autocast("cpu"):
        assert torch.equal(attend(*(part.float() for part in parts), kernel="few"), exact.bfloat16())
    assert all(gradient.dtype == torch.bfloat16 for gradient in torch.autograd.grad(output.sum(), parts))


def test_the_log_sum_exp_on_another_device_is_left_to_the_other_kernels():
    """The operation that tells it is the processor's own."""
    q, k = torch.empty(2, 7, 5, device="meta"), torch.empty(2, 11, 5, device="meta")
    call = Call(q, k, k, ScaledDot(), None, None, Soft(), dropout=0.0, full=True)
    assert choose(call).name == "eager"
    assert choose(replace(call, full=False)).name == "sdpa"


def test_one_query_is_not_large():
    """The additive score of one query holds as many numbers as its keys do; of two queries, twice as many."""
    hard = Hard()
    assert LARGE < 5 * 499 * 1009 * 2
    assert chosen(score=Additive(5, 5, 1009), select=hard, t=1, s=499, heads=5) == "eager"
    assert chosen(score=Additive(5, 5, 1009), select=hard, t=2, s=499, heads=5) == "rows"


def test_what_no_kernel_serves_is_told():
    message = (
        "no kernel of linear memory serves a selection other than soft together with a selection with a state, or "
        "whose weights are wanted and do not follow from the scores together with the log-sum-exp on a CPU together "
        "with the gradient of the log-sum-exp together with more than 2**22 scores, more than the numbers of its "
        "input; kernel='eager' does, with 4,224,182 numbers"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        chosen(select=Monotonic(), heads=1, full=True, **LARGE_BLOCK)
    assert chosen(select=Monotonic(), heads=1, **LARGE_BLOCK) == "rows"
    assert chosen(select=Hard(), heads=1, **LARGE_BLOCK) == "rows"
    parts = [draw(2, size, 5) for size in (1499, 1409, 1409)]
    assert attend(*parts, select=Hard(), kernel="eager").shape == (2, 1499, 5)


@pytest.mark.parametrize(
    ("kernel", "call", "missing"),
    [
        (
            "few",
            {},
            r"more than 8 queries \(twice as many for transposed keys\) or gradients over more than 24 keys, half",
        ),
        ("sdpa", {"dropout": 0.1}, "dropout of the weights"),
        ("sdpa", {"v": 3}, "values of another width than the keys"),
        ("sdpa", {"score": Additive(5, 5, 5)}, "a score that is not a dot product"),
        ("sdpa", {"select": Hard()}, "a selection other than soft"),
        ("sdpa", {"bias": RelativePosition(3, 2)}, "the gradient of a bias"),
        ("sdpa", {"full": True}, "the gradient of the log-sum-exp"),
        (
            "sdpa",
            {"dropout": 0.1, "v": 3},
            "dropout of the weights together with values of another width than the keys",
        ),
        ("blocked", {"select": Hard()}, "a selection other than soft"),
        ("sdpa", {"select": Soft(torch.zeros(3))}, "sinks in the softmax"),
        (
            "rows",
            {"select": Monotonic(), "full": True},
            "a selection with a state, or whose weights are wanted and do n",
        ),
    ],
)
def test_a_named_kernel_refuses_what_it_does_not_serve(kernel, call, missing):
    with pytest.raises(ValueError, match=f"^the {kernel} kernel does not serve {missing}.*; use kernel='auto'$"):
        chosen(kernel=kernel, **call)


def test_an_unknown_kernel_is_told():
    known = "auto, few, flex, sdpa, points, chunks, eager, blocked, rows"
    with pytest.raises(ValueError, match=f"no kernel is named 'flash'; known: {known}"):
        attend(draw(7, 5), draw(11, 5), draw(11, 5), kernel="flash")


@pytest.mark.parametrize("name", [kernel.name for kernel in TABLE if not kernel.only])
def test_the_named_kernel_computes(name, monkeypatch):
    used = []

    def watched(kernel):
        return replace(kernel, attend=lambda call: used.append(kernel.name) or kernel.attend(call))

    monkeypatch.setattr("foveate.attention.kernels.TABLE", [watched(kernel) for kernel in TABLE])
    attend(draw(7, 5), draw(11, 5), draw(11, 5), kernel=name)
    assert used == [name]


@pytest.fixture
def backends(monkeypatch) -> list[int]:
    """What torch chooses at each call of its fused attention."""
    seen = []
    fused = F.scaled_dot_product_attention

    def spy(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
        seen.append(torch._fused_sdp_choice(q, k, v, attn_mask, dropout_p, is_causal, scale=scale))
        return fused(q, k, v, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("shape", "mask", "bias"), every(MASKS, BIASES))
def test_torch_takes_its_fused_path(shape, mask, bias, dtype, backends, monkeypatch):
    p = problem("heads" if shape == "other values" else shape, "scaled dot", mask, bias).to(dtype)
    monkeypatch.setattr(sdpa, "BLOCK", 5 * p.keys.shape[-2])
    backward = not any(name.startswith("bias") for name in p.learned)
    solve(p, "sdpa", backward, full=False)
    # Where a mask allows no key at all, there is nothing to call.
    assert set(backends) <= {SDPBackend.FLASH_ATTENTION.value}
    assert backends or mask == "causal earlier"


def test_torch_takes_its_fused_path_whatever_the_layout(backends):
    """Heads split off a wider tensor, and keys whose last dimension is not the dense one."""
    q = draw(2, 7, 3 * 5).unflatten(-1, (3, 5)).transpose(1, 2)
    k, v = draw(2, 3, 5, 11).mT, draw(11, 2, 3, 5).permute(1, 2, 0, 3)
    mask = torch.rand(11, 7).mT < 0.5
    found = attend(q, k, v, mask=mask, kernel="sdpa")
    assert backends == [SDPBackend.FLASH_ATTENTION.value]
    torch.testing.assert_close(found, attend(q, k, v, mask=mask, kernel="eager"))
    with torch.no_grad():
        found = attend_full(q, k, v, mask=mask, kernel="sdpa")
        torch.testing.assert_close(found.log_sum_exp, attend_full(q, k, v, mask=mask, kernel="eager").log_sum_exp)
