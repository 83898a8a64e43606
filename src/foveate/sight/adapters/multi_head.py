"""Translates calls of `F.multi_head_attention_forward`, which `nn.MultiheadAttention` and torch's Transformer use.

Its intermediate results cannot be recorded, so queries, keys and values are recomputed from its arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.selection import weights
from foveate.sight.call_adapter import CallAdapter


@dataclass
class MultiHeadCall:
    """What `F.multi_head_attention_forward` computes for some arguments."""

    call: Call
    finish: Callable[[Tensor], Tensor]
    """Computes the output of the layer (B, T, C) from the outputs of its heads (B, H, T, V)."""
    batched: bool
    returns_weights: bool
    average: bool
    """Whether weights are returned as the mean of the heads."""

    def result(self, outputs: Tensor, changed: Call) -> tuple[Tensor, Tensor | None]:
        """What the function would return for other outputs of the heads, made by a changed call."""
        output = self.finish(outputs)
        shares = weights(changed.scores(), changed.select.sinks) if self.returns_weights else None
        if shares is not None and self.average:
            shares = shares.mean(1)
        if not self.batched:
            return output[0], None if shares is None else shares[0]
        return output.transpose(0, 1), shares


def multi_head_call(
    adapter: CallAdapter,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> MultiHeadCall:
    """The call that `F.multi_head_attention_forward` makes for these arguments."""
    inputs = [part if part.ndim == 3 else part.unsqueeze(1) for part in (query, key, value)]
    own = (q_proj_weight, k_proj_weight, v_proj_weight)
    matrices: Any = own if in_proj_weight is None or use_separate_proj_weight else in_proj_weight.chunk(3)
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    q, k, v = (F.linear(part, weight, bias) for part, weight, bias in zip(inputs, matrices, biases, strict=True))
    examples = q.shape[1]
    if bias_k is not None and bias_v is not None:
        k, v = (torch.cat([part, extra.expand(1, examples, -1)]) for part, extra in ((k, bias_k), (v, bias_v)))
    q, k, v = (_split_heads(part, num_heads) for part in (q, k, v))
    k, v = (
        given if static is None else static.unflatten(0, (examples, num_heads))
        for given, static in ((k, static_k), (v, static_v))
    )
    if add_zero_attn:
        k, v = (F.pad(part, (0, 0, 0, 1)) for part in (k, v))
    mask = _mask(attn_mask, key_padding_mask, (examples, num_heads, q.shape[2], k.shape[2]), q.dtype)
    call = adapter.call(q, k, v, mask, dropout=dropout_p if training else 0.0)

    def finish(outputs: Tensor) -> Tensor:
        joined = (
            outputs.transpose(1, 2).flatten(2).to(out_proj_weight.dtype)
        )  # autocast may have chosen a smaller dtype
        return F.linear(joined, out_proj_weight, out_proj_bias)

    return MultiHeadCall(call, finish, query.ndim == 3, need_weights, average_attn_weights)


def _split_heads(projected: Tensor, heads: int) -> Tensor:
    """Reshape (T, B, C) to (B, H, T, D)."""
    return projected.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


def _mask(
    mask: Tensor | None, padding: Tensor | None, shape: tuple[int, int, int, int], dtype: torch.dtype
) -> Tensor | None:
    """One mask (True: may attend) or numbers to add, from a mask (T, S) or (B*H, T, S) and a padding mask (B, S).

    In torch's boolean masks True means *not* to attend. Keys that torch appends may be attended to by every query.
    """
    examples, heads, _, keys = shape
    if mask is not None:
        mask = mask.unflatten(0, (examples, heads)) if mask.ndim == 3 else mask
    if padding is not None:
        padding = padding.reshape(examples, 1, 1, -1)
    parts = [F.pad(part, (0, keys - part.shape[-1])) for part in (mask, padding) if part is not None]
    if all(part.dtype == torch.bool for part in parts):
        allowed = [~part for part in parts]
        return allowed[0] & allowed[-1] if allowed else None
    numbers = [_as_numbers(part, dtype) for part in parts]
    return numbers[0] if len(numbers) == 1 else numbers[0] + numbers[1]


def _as_numbers(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf)
