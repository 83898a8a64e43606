"""Attention block by block with a running softmax: any score and bias, dropout, V != D; memory linear in T and S.

Nothing of size T x S is kept for the backward pass, which computes each block again from the queries, the keys and the
log-sum-exp (Rabe and Staats 2021, Dao et al. 2022). The additive score, which holds C numbers for each pair, never
exists but for one block.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from foveate.attention import workspace
from foveate.attention.call import Call
from foveate.attention.selection import Attended

BLOCK = 2**21
"""How many numbers a block of scores holds at most: 8 MiB in single precision."""


def attend(call: Call) -> Attended:
    leading = call.leading
    queries, keys, values = (part.expand(*leading, *part.shape[-2:]) for part in (call.queries, call.keys, call.values))
    learned = call.score.tensors() + (() if call.bias is None else call.bias.tensors())
    seed = _seed(call.generator) if call.dropout else 0
    output, log_sum_exp = _Blocked.apply(call, seed, queries, keys, values, *learned)
    return Attended(output, log_sum_exp)


class _Blocked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: Call, seed: int, queries: Tensor, keys: Tensor, values: Tensor, *learned: Tensor
    ) -> tuple[Tensor, Tensor]:
        call = replace(call, queries=queries, keys=keys, values=values)
        exact = torch.promote_types(queries.dtype, torch.float32)
        output = queries.new_zeros(*queries.shape[:-1], values.shape[-1], dtype=exact)
        log_sum_exp = queries.new_full(queries.shape[:-1], -torch.inf, dtype=exact)
        with workspace.reused():
            for rows, blocks in _blocks(call):
                span = slice(rows.start, rows.stop)
                output[..., span, :], log_sum_exp[..., span] = _row_of_blocks(call, seed, rows, blocks, exact)
        output = output.to(values.dtype)
        ctx.call, ctx.seed = call, seed
        ctx.save_for_backward(queries, keys, values, output, log_sum_exp, *learned)
        return output, log_sum_exp

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_output: Tensor, to_log_sum_exp: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, output, log_sum_exp, *learned = ctx.saved_tensors
        call = ctx.call
        inputs = (queries, keys, values, *learned)
        wanted = ctx.needs_input_grad[2:]
        exact = log_sum_exp.dtype
        gradients = [torch.zeros_like(part, dtype=exact) for part in inputs]
        # What the softmax takes off every gradient of its row: the mean of those gradients, less what the sum gains.
        common = (to_output.to(exact) * output.to(exact)).sum(-1) - to_log_sum_exp
        finite = log_sum_exp.masked_fill(log_sum_exp == -torch.inf, 0.0)
        with workspace.reused():
            for rows, blocks in _blocks(call):
                for number, columns in blocks:
                    _backward_block(ctx, rows, columns, number, gradients, to_output, common, finite)
        return (
            None,
            None,
            *(g.to(part.dtype) if want else None for g, part, want in zip(gradients, inputs, wanted, strict=True)),
        )


def _row_of_blocks(
    call: Call, seed: int, rows: range, blocks: list[tuple[int, range]], exact: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The output and log-sum-exp of the queries `rows`, from one block of keys after the other."""
    shape = (*call.leading, len(rows))
    highest = call.queries.new_full(shape, -torch.inf, dtype=exact)
    total = torch.zeros_like(highest)
    summed = highest.new_zeros(*shape, call.values.shape[-1])
    for number, columns in blocks:
        scores = call.scores(rows, columns).to(exact)
        higher = torch.maximum(highest, scores.amax(-1))
        shift = higher.masked_fill(higher == -torch.inf, 0.0)
        shares = scores.sub_(shift.unsqueeze(-1)).exp_()
        shrink = (highest - shift).exp_()
        total = total * shrink + shares.sum(-1)
        if call.dropout:
            shares = shares * _keep(call, seed, number, shares)
        values = call.values[..., columns.start : columns.stop, :]
        summed = summed * shrink.unsqueeze(-1) + (shares.to(values.dtype) @ values).to(exact)
        highest = higher
    return summed / total.masked_fill(total == 0, 1.0).unsqueeze(-1), highest + total.log()


def _backward_block(
    ctx: Any,
    rows: range,
    columns: range,
    number: int,
    gradients: list[Tensor],
    to_output: Tensor,
    common: Tensor,
    log_sum_exp: Tensor,
) -> None:
    """Add what one block gives to the gradients of queries, keys, values and learned tensors."""
    queries, keys, values, _, _, *learned = ctx.saved_tensors
    call, over, along = ctx.call, slice(rows.start, rows.stop), slice(columns.start, columns.stop)
    q = queries[..., over, :].detach().requires_grad_()
    k = keys[..., along, :].detach().requires_grad_()
    with torch.enable_grad():
        scores = call.finish(call.score.block(q, k), q, rows, columns)
    shares = (scores.detach().to(common.dtype) - log_sum_exp[..., over, None]).exp_()
    kept = shares * _keep(call, ctx.seed, number, shares) if call.dropout else shares
    outgoing = to_output[..., over, :]
    gradients[2][..., along, :] += kept.to(outgoing.dtype).mT @ outgoing
    to_shares = (outgoing @ values[..., along, :].mT).to(common.dtype)
    if call.dropout:
        to_shares = to_shares * _keep(call, ctx.seed, number, shares)
    to_scores = shares * to_shares.sub_(common[..., over, None])
    needed = [part for part in learned if part.requires_grad]
    found = torch.autograd.grad(scores, (q, k, *needed), to_scores.to(scores.dtype), allow_unused=True)
    gradients[0][..., over, :] += found[0]
    gradients[1][..., along, :] += found[1]
    places = [place for place, part in enumerate(learned, 3) if part.requires_grad]
    for place, gradient in zip(places, found[2:], strict=True):
        if gradient is not None:
            gradients[place] += gradient


def _blocks(call: Call) -> Iterator[tuple[range, list[tuple[int, range]]]]:
    """Spans of queries, each with the numbered spans of keys that they may reach."""
    count, total = call.queries.shape[-2], call.keys.shape[-2]
    per_pair = max(1, call.leading.numel() * call.score.footprint(call.queries.shape[-1]))
    pairs = max(1, BLOCK // per_pair)
    height = min(max(1, count), max(1, math.isqrt(pairs)))
    breadth = max(1, pairs // height)
    for top in range(0, count, height):
        rows = range(top, min(count, top + height))
        reach = range(total) if call.mask is None else call.mask.reach(rows, total)
        spans = [range(left, min(reach.stop, left + breadth)) for left in range(reach.start, reach.stop, breadth)]
        yield rows, [(top * (total + 1) + span.start, span) for span in spans]


def _seed(generator: torch.Generator | None) -> int:
    device = "cpu" if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))


def _keep(call: Call, seed: int, number: int, like: Tensor) -> Tensor:
    """Dropout's factors for one block: the same in both passes, 0 or 1 / (1 - dropout)."""
    generator = torch.Generator(like.device).manual_seed(seed + number)
    keep = torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator) >= call.dropout
    return keep / (1 - call.dropout)
