"""Dot-product attention by torch's fused kernel: memory linear in T and S.

A causal mask from the first key is passed as a flag, padding as a row of booleans. Any other mask is passed for a block
of queries at a time, with only the keys that they may look at, so that T x S booleans never exist. The backward pass
computes each block again.
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.accelerator import NO_AUTOCAST
from foveate.attention.call import Call
from foveate.attention.kernels.recompute import SavedCall
from foveate.attention.masks import Causal
from foveate.attention.selection import Attended

BLOCK = 2**18
"""Pairs of a query and a key in one block of a mask or bias."""

FEW = 128
"""Least number of queries in a block."""


def attend(call: Call) -> Attended:
    call = in_the_type_of_autocast(call)
    leading = call.leading
    parts = (call.queries, call.keys, call.values)
    queries, keys, values = (in_four_dimensions(part.expand(*leading, *part.shape[-2:]), leading) for part in parts)
    if call.mask is None and call.bias is None:
        output, log_sum_exp = _fused(call, queries, keys, values)
    elif call.bias is None and call.mask == Causal(0):
        output, log_sum_exp = _fused(call, queries, keys, values, causal=True)
    elif len(blocks := list(_blocks(call))) == 1:
        rows, columns = blocks[0]
        output, log_sum_exp = _block(call, *_views(queries, keys, values, rows, columns), rows, columns)
    else:
        output, log_sum_exp = _InBlocks.apply(call, queries, keys, values)  # type: ignore[no-untyped-call]
    output = output.reshape(*leading, *output.shape[-2:])
    return Attended(output, None if log_sum_exp is None else log_sum_exp.reshape(output.shape[:-1]))


def in_the_type_of_autocast(call: Call) -> Call:
    """The call with queries, keys and values in the type of autocast, for a function that runs without autocast."""
    if not _autocasts(call.queries.device):
        return call
    kind = SavedCall.of(call).output_dtype(call.values)
    parts = {name: getattr(call, name).to(kind) for name in ("queries", "keys", "values")}
    return replace(call, **parts)


def _autocasts(device: torch.device) -> bool:
    return device.type not in NO_AUTOCAST and torch.is_autocast_enabled(device.type)


class _InBlocks(torch.autograd.Function):
    """Attention block by block; only the output is kept."""

    @staticmethod
    def forward(ctx: Any, call: Call, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor | None]:
        ctx.saved_call, ctx.leading = SavedCall.of(call), call.leading
        # Also the tensors of mask and bias: autograd then raises an error if they were modified in place.
        ctx.save_for_backward(queries, keys, values, *call.tensors())
        # One output for all blocks: many small ones would fragment the memory.
        output = values.new_empty(*queries.shape[:-1], values.shape[-1], dtype=ctx.saved_call.output_dtype(values))
        log_sum_exp = values.new_empty(queries.shape[:-1], dtype=torch.promote_types(values.dtype, torch.float32))
        for rows, columns in _blocks(call):
            found, sums = _block(call, *_views(queries, keys, values, rows, columns), rows, columns)
            output[:, :, rows.start : rows.stop] = found
            if sums is not None:
                log_sum_exp[:, :, rows.start : rows.stop] = sums
        ctx.mark_non_differentiable(log_sum_exp)
        return output, log_sum_exp if call.full else None

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_output: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = queries, keys, values = ctx.saved_tensors[:3]
        call = ctx.saved_call.with_tensors(*(part.reshape(*ctx.leading, *part.shape[-2:]) for part in saved))
        exact = torch.promote_types(values.dtype, torch.float32)
        to_queries, to_keys, to_values = (torch.zeros_like(part, dtype=exact) for part in saved)
        for rows, columns in _blocks(call):
            q, k, v = (part.detach().requires_grad_() for part in _views(queries, keys, values, rows, columns))
            with torch.enable_grad(), ctx.saved_call.autocast():
                output, _ = _block(call, q, k, v, rows, columns)
            found = torch.autograd.grad(output, (q, k, v), to_output[:, :, rows.start : rows.stop].to(output.dtype))
            for total, part in zip(_views(to_queries, to_keys, to_values, rows, columns), found, strict=True):
                total += part
        return None, to_queries.to(queries.dtype), to_keys.to(keys.dtype), to_values.to(values.dtype)


def _blocks(call: Call) -> Iterator[tuple[range, range]]:
    """Spans of queries, each with the span of keys that they may look at.

    A span has about as many queries as one query has keys (at least `FEW`). Larger blocks would contain many keys that
    a window hides; smaller ones would spend the time on calls.
    """
    count, total = call.queries.shape[-2], call.keys.shape[-2]

    def reach(rows: range) -> range:
        return range(total) if call.mask is None else call.mask.reach(rows, total)

    def size(start: int) -> int:
        if _alike(call):
            return max(1, count)
        seen = max(FEW, len(reach(range(start, start + 1))))
        return max(1, min(seen, BLOCK // max(1, len(reach(range(start, start + seen))))))

    start = 0
    while start < max(1, count):
        stop = start + size(start)
        rows = range(start, min(count, stop))
        yield rows, reach(rows)
        start = stop


def _views(queries: Tensor, keys: Tensor, values: Tensor, rows: range, columns: range) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a block, as views."""
    over, along = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
    return queries[:, :, over], keys[:, :, along], values[:, :, along]


def _block(
    call: Call, queries: Tensor, keys: Tensor, values: Tensor, rows: range, columns: range
) -> tuple[Tensor, Tensor | None]:
    return _fused(call, queries, keys, values, _mask(call, rows, columns))


def _alike(call: Call) -> bool:
    """Returns whether all queries share one row of the mask."""
    return call.bias is None and call.mask is not None and not call.mask.rowwise


def _fused(
    call: Call, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
) -> tuple[Tensor, Tensor | None]:
    if 0 in (*queries.shape[:-1], keys.shape[-2]):
        # An empty sum with gradients. The fused kernel crashes here.
        return queries @ keys.mT @ values, queries.new_full(queries.shape[:-1], -torch.inf)
    # Autocast would also round a mask of numbers.
    with torch.autocast(queries.device.type, enabled=False) if _autocasts(queries.device) else nullcontext():
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
        # The kernel returns 0, not -inf, for a query whose keys are all masked.
        nowhere = (mask == -torch.inf).all(-1).expand(log_sum_exp.shape)
        log_sum_exp = log_sum_exp.masked_fill(nowhere, -torch.inf)
    return output, log_sum_exp


def _mask(call: Call, rows: range, columns: range) -> Tensor:
    """The mask and bias of a block in four dimensions: booleans, or numbers to add."""
    leading, device = call.leading, call.queries.device
    rows = range(1) if _alike(call) else rows
    allowed = None if call.mask is None else call.mask.block(rows, columns, len(leading), device)
    if call.bias is not None:
        # Detached: torch does not use its fused kernel for a bias that requires gradients.
        numbers = call.bias.block(call.queries[..., rows.start : rows.stop, :], rows, columns).detach()
        # Half precision would round a bias that grows with the distance. GPU kernels require the type of the queries.
        exact = torch.promote_types(call.queries.dtype, torch.float32) if device.type == "cpu" else call.queries.dtype
        numbers = _at_full_length(numbers.to(exact), columns)
        return in_four_dimensions(numbers if allowed is None else numbers.masked_fill(~allowed, -torch.inf), leading)
    assert allowed is not None
    return in_four_dimensions(_at_full_length(allowed, columns), leading)


def _at_full_length(tensor: Tensor, columns: range) -> Tensor:
    """Expanded to a number for each key on other devices than a CPU: their kernels require dense rows."""
    if tensor.device.type == "cpu" or tensor.shape[-1] == len(columns):
        return tensor
    return tensor.expand(*tensor.shape[:-1], len(columns)).contiguous()


def in_four_dimensions(tensor: Tensor, leading: torch.Size) -> Tensor:
    """Reshapes to (batch, heads, rows, columns): the first leading dimension, then all others merged into one.

    Broadcast dimensions stay 1 if possible, so that a mask is not copied for each head. The fused kernel requires a
    dense last dimension.
    """
    if tensor.ndim == len(leading) + 2 == 4 and tensor.stride(-1) == 1:
        return tensor
    own = (1,) * (len(leading) + 2 - tensor.ndim) + tensor.shape[:-2]
    if math.prod(own[1:]) > 1:
        own = own[:1] + leading[1:]
    tensor = tensor.expand(*own, *tensor.shape[-2:])
    tensor = tensor.reshape(*(own[:1] or (1,)), math.prod(own[1:]), *tensor.shape[-2:])
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
