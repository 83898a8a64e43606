"""flash-attn's functions, which a stand-in computes by plain torch with the same names and signatures."""

import math
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveate import look
from foveate.errors import UserError

B, H, G, T, S, D = 2, 6, 3, 7, 11, 5


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    softmax_scale: float | None,
    causal: bool,
    window_size: tuple[int, int],
    softcap: float,
    alibi_slopes: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """One text, (T, H, D) and (S, G, D): what the package's own documentation says; output and weights."""
    q, k, v = (part.transpose(0, 1) for part in (q, k, v))
    k, v = (part.repeat_interleave(len(q) // len(part), 0) for part in (k, v))
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if softmax_scale is None else softmax_scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    behind = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1] - torch.arange(k.shape[1])
    if alibi_slopes is not None:
        scores = scores - alibi_slopes[:, None, None] * behind.abs()
    left, right = window_size[0], 0 if causal else window_size[1]
    hidden = torch.zeros_like(behind, dtype=torch.bool)
    hidden = hidden | (behind > left) if left >= 0 else hidden
    hidden = hidden | (-behind > right) if right >= 0 else hidden
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    return (weights @ v).transpose(0, 1), weights


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
    alibi_slopes=None, deterministic=False, return_attn_probs=False,
):  # fmt: skip
    slopes = [None if alibi_slopes is None else alibi_slopes.expand(len(q), -1)[i] for i in range(len(q))]
    found = [attend(*parts, softmax_scale, causal, window_size, softcap, own) for *parts, own in zip(q, k, v, slopes)]  # noqa: B905
    output = torch.stack([each for each, _ in found])
    return (output, output.new_zeros(()), None) if return_attn_probs else output


def flash_attn_kvpacked_func(
    q, kv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
    alibi_slopes=None, deterministic=False, return_attn_probs=False,
):  # fmt: skip
    return flash_attn_func(q, *kv.unbind(2), 0.0, softmax_scale, causal, window_size, softcap, alibi_slopes)


def flash_attn_qkvpacked_func(
    qkv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
    alibi_slopes=None, deterministic=False, return_attn_probs=False,
):  # fmt: skip
    return flash_attn_func(*qkv.unbind(2), 0.0, softmax_scale, causal, window_size, softcap, alibi_slopes)


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None,
    causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
    return_attn_probs=False, block_table=None,
):  # fmt: skip
    outputs = []
    for text in range(len(cu_seqlens_q) - 1):
        queries = slice(cu_seqlens_q[text], cu_seqlens_q[text + 1])
        keys = slice(cu_seqlens_k[text], cu_seqlens_k[text + 1])
        outputs.append(
            attend(q[queries], k[keys], v[keys], softmax_scale, causal, window_size, softcap, alibi_slopes)[0]
        )
    return torch.cat(outputs)


def flash_attn_with_kvcache(
    q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
    cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
    window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0,
    return_softmax_lse=False,
):  # fmt: skip
    outputs = []
    for example in range(len(q)):
        row = example if cache_batch_idx is None else int(cache_batch_idx[example])
        length = cache_seqlens if isinstance(cache_seqlens, int) else int(cache_seqlens[example])
        if k is not None:
            k_cache[row, length : length + k.shape[1]] = k[example]
            v_cache[row, length : length + v.shape[1]] = v[example]
            length += k.shape[1]
        query = q[example] if rotary_cos is None else q[example] * rotary_cos
        keys, values = k_cache[row, :length], v_cache[row, :length]
        outputs.append(attend(query, keys, values, softmax_scale, causal, window_size, softcap, alibi_slopes)[0])
    return torch.stack(outputs)


FUNCTIONS = {name: function for name, function in list(globals().items()) if name.startswith("flash_attn_")}


@pytest.fixture(autouse=True)
def _package() -> Iterator[None]:
    package = ModuleType("flash_attn")
    vars(package).update(FUNCTIONS)
    sys.modules["flash_attn"] = package
    yield
    del sys.modules["flash_attn"]


class Flash(nn.Module):
    """Calls one of the functions by the name that this module has for it."""

    def forward(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return globals()[name](*args, **kwargs)


def dense(q: Tensor, k: Tensor, **options: Any) -> Tensor:
    """The weights of (B, T, H, D) queries: (B, H, T, S)."""
    full = {"softmax_scale": None, "causal": False, "window_size": (-1, -1), "softcap": 0.0, "alibi_slopes": None}
    return torch.stack([attend(one, other, other, **{**full, **options})[1] for one, other in zip(q, k, strict=True)])


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"softmax_scale": 0.9},
    "causal": {"causal": True},
    "window": {"window_size": (2, 1)},
    "causal window": {"window_size": (3, -1), "causal": True},
    "capped": {"softcap": 1.5},
    "alibi": {"alibi_slopes": torch.linspace(0.1, 1, H)},
}


def seen(name: str, *args: Any, **options: Any) -> Any:
    """The only site of a call, whose output is what it is without looking."""
    expected = FUNCTIONS[name](*(part.clone() if isinstance(part, Tensor) else part for part in args), **options)
    with look(model := Flash()) as sight:
        output = model(name, *args, **options)
    assert sight.sites == [""]
    pairs = zip(output, expected, strict=True) if isinstance(output, tuple) else [(output, expected)]
    assert all(one is other or torch.equal(one, other) for one, other in pairs)
    assert globals()[name] is FUNCTIONS[name]
    return sight[""]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("heads", [H, G])
def test_plain_and_packed_tensors(name: str, heads: int) -> None:
    q, k, options = torch.randn(B, T, H, D), torch.randn(B, S, heads, D), OPTIONS[name]
    expected = dense(q, k, **options)
    torch.testing.assert_close(seen("flash_attn_func", q, k, k, **options).weights(), expected, atol=1e-6, rtol=0)
    packed = seen("flash_attn_kvpacked_func", q, torch.stack([k, k], 2), **options)
    torch.testing.assert_close(packed.weights(), expected, atol=1e-6, rtol=0)
    packed = seen("flash_attn_qkvpacked_func", torch.stack([q, q, q], 2), **options)
    torch.testing.assert_close(packed.weights(), dense(q, q, **options), atol=1e-6, rtol=0)


def test_more_than_the_output_is_returned() -> None:
    q = torch.randn(B, T, H, D)
    site = seen("flash_attn_func", q, q, q, return_attn_probs=True)
    torch.testing.assert_close(site.weights(), dense(q, q), atol=1e-6, rtol=0)


def test_slopes_for_each_example() -> None:
    q, slopes = torch.randn(B, T, H, D), torch.rand(B, H)
    site = seen("flash_attn_func", q, q, q, alibi_slopes=slopes)
    expected = torch.cat([dense(q[i : i + 1], q[i : i + 1], alibi_slopes=slopes[i]) for i in range(B)])
    torch.testing.assert_close(site.weights(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", OPTIONS)
def test_texts_behind_one_another(name: str) -> None:
    """Each query looks at its own text alone, and its place is counted from that text's end."""
    lengths, key_lengths, options = [2, 4, 1], [3, 4, 5], OPTIONS[name]
    q, k = torch.randn(sum(lengths), H, D), torch.randn(sum(key_lengths), G, D)
    starts, key_starts = (torch.tensor([0, *each]).cumsum(0).int() for each in (lengths, key_lengths))
    site = seen("flash_attn_varlen_func", q, k, k, starts, key_starts, 4, 5, **options)
    blocks = zip(q.split(lengths), k.split(key_lengths), strict=True)
    weights = [dense(query[None], key[None], **options)[0] for query, key in blocks]
    expected = torch.stack([torch.block_diag(*(text[head] for text in weights)) for head in range(H)])
    torch.testing.assert_close(site.weights()[0], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_cache(name: str) -> None:
    """What is not written yet is not looked at."""
    q, cache, options = torch.randn(B, 2, H, D), torch.randn(5, S, G, D), OPTIONS[name]
    new, lengths, rows = torch.randn(B, 2, G, D), torch.tensor([3, 6]), torch.tensor([4, 1])
    arguments = {"k": new, "v": new, "cache_seqlens": lengths, "cache_batch_idx": rows}
    site = seen("flash_attn_with_kvcache", q, cache, cache.clone(), **arguments, **options)
    for example, length in enumerate((5, 8)):
        keys = torch.cat([cache[rows[example], : length - 2], new[example]])
        found = site.weights()[example]
        torch.testing.assert_close(
            found[..., :length], dense(q[example][None], keys[None], **options)[0], atol=1e-6, rtol=0
        )
        assert not found[..., length:].any()


def test_one_length_for_all() -> None:
    q, cache = torch.randn(B, 1, H, D), torch.randn(B, S, G, D)
    site = seen("flash_attn_with_kvcache", q, cache, cache, cache_seqlens=4, causal=True)
    torch.testing.assert_close(site.weights()[..., :4], dense(q, cache[:, :4]), atol=1e-6, rtol=0)


def test_queries_that_are_rotated_inside_are_refused() -> None:
    """They are not what was given, so the output is not what the call says."""
    q, cache = torch.randn(B, 1, H, D), torch.randn(B, S, G, D)
    message = r"the model \(Flash\) has an output that is not the mean of the values by the weights"
    with pytest.raises(UserError, match=message), look(model := Flash()):
        model("flash_attn_with_kvcache", q, cache, cache, rotary_cos=torch.randn(D), cache_seqlens=4)


def test_what_is_not_a_call_of_the_model_is_told() -> None:
    q = torch.randn(B, T, H, D)
    with pytest.raises(UserError, match="outside of a call of the model"), look(model := Flash()):
        model.forward("flash_attn_func", q, q, q)


def test_what_is_imported_during_a_look_is_put_back() -> None:
    late, q = ModuleType("late"), torch.randn(B, T, H, D)
    sys.modules["late"] = late
    try:
        with look(model := Flash()):
            late.attend = sys.modules["flash_attn"].flash_attn_func
            model("flash_attn_func", q, q, q)
        assert late.attend is FUNCTIONS["flash_attn_func"]
    finally:
        del sys.modules["late"]
