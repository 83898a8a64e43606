"""What other libraries mean by one tensor of masks and biases, told in foveate's terms."""

import pytest
import torch
from torch import Tensor

from foveate.attention.masks import Causal
from foveate.attention.scores import ScaledDot, SoftCapped
from foveate.sight.call_adapter import CallAdapter

B, H, T, S, D = 2, 6, 7, 11, 5
LEAST = torch.finfo(torch.float32).min


def call_of(mask: Tensor | None = None, heads: int = H, steps: int = T, keys: int = S, **options: object) -> object:
    q, k = torch.randn(B, H, steps, D), torch.randn(B, heads, keys, D)
    return CallAdapter().call(q, k, k, mask, **options)


def allowed(call: object, steps: int = T, keys: int = S) -> Tensor:
    return call.mask.block(range(steps), range(keys), len(call.leading), torch.device("cpu"))


def test_booleans_that_hide_nothing_are_no_mask() -> None:
    assert call_of(torch.ones(B, 1, T, S, dtype=torch.bool)).mask is None
    assert call_of(torch.zeros(T, S)).mask is call_of(torch.zeros(T, S)).bias is None


@pytest.mark.parametrize("low", [-torch.inf, LEAST, torch.finfo(torch.float16).min])
def test_numbers_that_only_hide_become_booleans(low: float) -> None:
    hidden = torch.rand(B, 1, T, S) > 0.5
    hidden[..., 0] = False
    call = call_of(torch.zeros(B, 1, T, S).masked_fill(hidden, low))
    assert call.bias is None
    assert torch.equal(allowed(call), ~hidden)


def test_causality_is_known_by_its_looks() -> None:
    assert call_of(torch.ones(S, S).tril().bool(), steps=S).mask == Causal(0)
    assert call_of(torch.ones(T, S).tril(S - T).bool()).mask == Causal(S - T)
    assert call_of(torch.zeros(S, S).masked_fill(torch.ones(S, S).triu(1).bool(), LEAST), steps=S).mask == Causal(0)
    assert call_of(causal=True).mask == Causal(0)


def test_numbers_to_add_are_a_copy() -> None:
    """They may be a module's own, which it changes with the next step."""
    numbers = torch.randn(1, H, T, S)
    call = call_of(numbers)
    assert call.mask is None
    expected = numbers.clone()
    numbers.zero_()
    assert torch.equal(call.bias.block(call.queries, range(T), range(S)), expected)


def test_a_row_of_one_low_number_looks_everywhere_alike() -> None:
    """The softmax of equal scores is no empty row."""
    mask = torch.zeros(1, 1, T, S)
    mask[..., 2, :] = LEAST
    call = call_of(mask)
    assert torch.equal(call.bias.block(call.queries, range(T), range(S)), mask)


def test_a_row_of_minus_infinity_looks_nowhere() -> None:
    mask = torch.zeros(1, 1, T, S)
    mask[..., 2, :] = -torch.inf
    assert not allowed(call_of(mask))[..., 2, :].any()


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_heads_that_share_keys(heads: int) -> None:
    mask = torch.rand(B, H, T, S) > 0.3
    call = call_of(mask, heads, sinks=torch.arange(6.0))
    assert call.leading == (B, heads, H // heads)
    assert torch.equal(allowed(call).reshape(B, H, T, S), mask)
    assert torch.equal(call.select.sinks.flatten(), torch.arange(6.0))


def test_scores() -> None:
    assert call_of(scale=0.3).score == ScaledDot(0.3)
    capped = call_of(cap=20.0).score
    assert isinstance(capped, SoftCapped)
    assert (capped.score, capped.cap) == (ScaledDot(None), 20.0)
    assert call_of(dropout=0.1).dropout == 0.1


def test_the_empty_rest_of_a_cache_is_left_away() -> None:
    mask = torch.zeros(B, 1, 1, S, dtype=torch.bool)
    mask[..., :4] = True
    q, k = torch.randn(B, H, 1, D), torch.randn(B, H, S, D)
    k[:, :, 4:] = 0
    call = CallAdapter().call(q, k, k, mask)
    assert call.keys.shape == (B, H, 4, D)
    assert call.mask is None
    k[1, 0, 6, 2] = 1  # something is there, so it is padding
    call = CallAdapter().call(q, k, k, mask.clone())
    assert call.keys.shape == (B, H, S, D)
    assert torch.equal(allowed(call, 1), mask)


def test_a_mask_that_is_used_by_all_layers_is_understood_once(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, mask, counted = CallAdapter(), torch.rand(B, 1, T, S) > 0.3, []
    meaning = CallAdapter._interpret
    monkeypatch.setattr(CallAdapter, "_interpret", lambda *arguments: (counted.append(1), meaning(*arguments))[1])
    q, k = torch.randn(B, H, T, D), torch.randn(B, H, S, D)
    first, second = (adapter.call(q, k, k, mask) for _ in range(2))
    assert first.mask is second.mask
    assert len(counted) == 1
    mask[0, 0, 0] = ~mask[0, 0, 0]
    assert torch.equal(allowed(adapter.call(q, k, k, mask)), mask)
    assert len(counted) == 2


def test_a_mask_of_inference_mode_is_understood_again_once_it_is_written_to() -> None:
    with torch.inference_mode():
        adapter, mask = CallAdapter(), torch.rand(B, 1, T, S) > 0.3
        q, k = torch.randn(B, H, T, D), torch.randn(B, H, S, D)
        first = adapter.call(q, k, k, mask)
        assert adapter.call(q, k, k, mask).mask is first.mask
        mask[0, 0, 0] = ~mask[0, 0, 0]
        assert torch.equal(allowed(adapter.call(q, k, k, mask)), mask)
