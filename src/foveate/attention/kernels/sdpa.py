"""Dot-product attention by torch's fused kernel: memory linear in T and S.

A mask that is a flag (causal from the first key) or a row of booleans (padding) is handed over as it is. Any other is
handed over block by block of queries, each with only the keys that it may reach, so that T x S booleans never exist.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.masks import Causal
from foveate.attention.selection import Attended

BLOCK = 2**18
"""How many pairs of a query and a key a mask or bias is built for at once."""


def attend(call: Call) -> Attended:
    leading = call.leading
    parts = (call.queries, call.keys, call.values)
    queries, keys, values = (_four(part.expand(*leading, *part.shape[-2:]), leading) for part in parts)
    if call.mask is None and call.bias is None:
        output, log_sum_exp = _fused(call, queries, keys, values)
    elif call.bias is None and call.mask == Causal(0):
        output, log_sum_exp = _fused(call, queries, keys, values, causal=True)
    else:
        output, log_sum_exp = _in_blocks(call, queries, keys, values)
    output = output.reshape(*leading, *output.shape[-2:])
    return Attended(output, None if log_sum_exp is None else log_sum_exp.reshape(output.shape[:-1]))


def _in_blocks(call: Call, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor | None]:
    count, total = queries.shape[-2], keys.shape[-2]
    alike = call.bias is None and call.mask is not None and not call.mask.rowwise
    size = count if alike else max(1, BLOCK // max(1, total))
    outputs, sums = [], []
    for start in range(0, count, size):
        rows = range(start, min(count, start + size))
        columns = range(total) if call.mask is None else call.mask.reach(rows, total)
        span = slice(columns.start, columns.stop)
        output, log_sum_exp = _fused(
            call,
            queries[:, :, rows.start : rows.stop],
            keys[:, :, span],
            values[:, :, span],
            _mask(call, range(1) if alike else rows, columns),
        )
        outputs.append(output)
        sums.append(log_sum_exp)
    if len(outputs) == 1:
        return outputs[0], sums[0]
    return torch.cat(outputs, -2), torch.cat(sums, -1) if call.full else None


def _fused(
    call: Call, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
) -> tuple[Tensor, Tensor | None]:
    if not keys.shape[-2]:
        nothing = queries.new_zeros(*queries.shape[:-1], values.shape[-1])
        return nothing, queries.new_full(queries.shape[:-1], -torch.inf)
    if not call.full:
        output = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, is_causal=causal, scale=call.scale
        )
        return output, None
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=queries.dtype).masked_fill(~mask, -torch.inf)
    output, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries, keys, values, 0.0, causal, attn_mask=mask, scale=call.scale
    )
    if mask is not None:
        # The kernel gives 0, not -inf, for a query that may look nowhere.
        nowhere = (mask == -torch.inf).all(-1).expand(log_sum_exp.shape)
        log_sum_exp = log_sum_exp.masked_fill(nowhere, -torch.inf)
    return output, log_sum_exp


def _mask(call: Call, rows: range, columns: range) -> Tensor:
    """The mask and bias of a block in the four dimensions of the kernel: booleans, or numbers to add."""
    leading = call.leading
    allowed = None if call.mask is None else call.mask.block(rows, columns, len(leading), call.queries.device)
    if call.bias is None:
        return _four(allowed, leading)
    numbers = call.bias.block(call.queries[..., rows.start : rows.stop, :], rows, columns).to(call.queries.dtype)
    if allowed is not None:
        numbers = numbers.masked_fill(~allowed, -torch.inf)
    return _four(numbers, leading)


def _four(tensor: Tensor, leading: torch.Size) -> Tensor:
    """As (batch, heads, rows, columns): the first leading dimension, then all others merged into one.

    Dimensions that only repeat stay 1 where they can, so that a mask is not copied for each head.
    """
    own = (1,) * (len(leading) + 2 - tensor.ndim) + tensor.shape[:-2]
    if math.prod(own[1:]) > 1:
        own = own[:1] + leading[1:]
    tensor = tensor.expand(*own, *tensor.shape[-2:])
    return tensor.reshape(*(own[:1] or (1,)), math.prod(own[1:]), *tensor.shape[-2:])
