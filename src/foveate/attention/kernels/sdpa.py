"""Dot-product attention by torch's fused kernel: memory linear in T and S.

A mask that is a flag (causal from the first key) or a row of booleans (padding) is handed over as it is. Any other is
handed over block by block of queries, each with only the keys that it may reach, so that T x S booleans never exist.
Nor are they kept for the backward pass, which builds each block's mask, and its output, again.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

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
    forgetful = size < count and torch.is_grad_enabled()
    outputs, sums = [], []
    for start in range(0, max(1, count), max(1, size)):
        rows = range(start, min(count, start + size))
        columns = range(total) if call.mask is None else call.mask.reach(rows, total)
        over, along = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
        parts = (
            call,
            queries[:, :, over],
            keys[:, :, along],
            values[:, :, along],
            range(1) if alike else rows,
            columns,
        )
        if forgetful:
            output, log_sum_exp = checkpoint(_block, *parts, use_reentrant=False, preserve_rng_state=False)
        else:
            output, log_sum_exp = _block(*parts)
        outputs.append(output)
        sums.append(log_sum_exp)
    if len(outputs) == 1:
        return outputs[0], sums[0]
    return torch.cat(outputs, -2), torch.cat(sums, -1) if call.full else None


def _block(
    call: Call, queries: Tensor, keys: Tensor, values: Tensor, rows: range, columns: range
) -> tuple[Tensor, Tensor | None]:
    return _fused(call, queries, keys, values, _mask(call, rows, columns))


def _fused(
    call: Call, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
) -> tuple[Tensor, Tensor | None]:
    if 0 in (*queries.shape[:-1], keys.shape[-2]):
        # The sum of no values, with its gradients; the fused kernel would end the process.
        return queries @ keys.mT @ values, queries.new_full(queries.shape[:-1], -torch.inf)
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
    leading, device = call.leading, call.queries.device
    allowed = None if call.mask is None else call.mask.block(rows, columns, len(leading), device)
    if call.bias is not None:
        # Detached: torch leaves the fused path for a bias that could learn, even where nothing does.
        numbers = call.bias.block(call.queries[..., rows.start : rows.stop, :], rows, columns).detach()
        # Half precision would round a bias that grows with the distance; other devices' kernels want the queries' type.
        exact = torch.promote_types(call.queries.dtype, torch.float32) if device.type == "cpu" else call.queries.dtype
        numbers = numbers.to(exact)
        return _four(numbers if allowed is None else numbers.masked_fill(~allowed, -torch.inf), leading)
    assert allowed is not None
    return _four(allowed, leading)


def _four(tensor: Tensor, leading: torch.Size) -> Tensor:
    """As (batch, heads, rows, columns): the first leading dimension, then all others merged into one.

    Dimensions that only repeat stay 1 where they can, so that a mask is not copied for each head. The last dimension
    lies densely: the fused kernel wants it so.
    """
    own = (1,) * (len(leading) + 2 - tensor.ndim) + tensor.shape[:-2]
    if math.prod(own[1:]) > 1:
        own = own[:1] + leading[1:]
    tensor = tensor.expand(*own, *tensor.shape[-2:])
    tensor = tensor.reshape(*(own[:1] or (1,)), math.prod(own[1:]), *tensor.shape[-2:])
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
