"""Attention block by block with a running softmax: any score and bias, dropout, V != D; memory linear in T and S.

Nothing of size T x S is kept for the backward pass, which computes each block again from the queries, the keys and the
log-sum-exp (Rabe and Staats 2021, Dao et al. 2022). The additive score, with C numbers for each pair, exists for one
block at a time. Scores have the precision of their inputs; all else has at least single precision.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveate.attention import scratch
from foveate.attention.autocast import without_autocast
from foveate.attention.call import Call
from foveate.attention.kernels.recompute import SavedCall, draw_seed
from foveate.attention.selection import Attended

BLOCK = 2**21
"""The most numbers in a block of scores: 8 MiB in single precision."""


def attend(call: Call) -> Attended:
    leading = call.leading
    queries, keys, values = (part.expand(*leading, *part.shape[-2:]) for part in (call.queries, call.keys, call.values))
    read = call.score.tensors() + (() if call.bias is None else call.bias.tensors())
    learned = list({id(part): part for part in read if part.requires_grad}.values())  # each has one gradient
    sinks = call.select.sinks
    learned += [sinks] if sinks is not None and sinks.requires_grad else []
    seed = draw_seed(call.generator) if call.dropout else 0
    output, log_sum_exp = _Blocked.apply(call, seed, queries, keys, values, *learned)  # type: ignore[no-untyped-call]
    return Attended(output, log_sum_exp)


class _Blocked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: Call, seed: int, queries: Tensor, keys: Tensor, values: Tensor, *learned: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.saved_call, ctx.seed = SavedCall.of(call), seed
        output, log_sum_exp = _Forward(ctx.saved_call, ctx.saved_call.with_tensors(queries, keys, values), seed).run()
        ctx.count = len(learned)
        # Also tensors without gradients: autograd then raises an error if they were modified in place.
        ctx.save_for_backward(queries, keys, values, output, log_sum_exp, *learned, *call.tensors())
        return output.to(ctx.saved_call.output_dtype(values)), log_sum_exp

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_output: Tensor, to_log_sum_exp: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, output, log_sum_exp, *read = ctx.saved_tensors
        learned = read[: ctx.count]
        to_output = to_output.to(output.dtype)
        inputs = (queries, keys, values, *learned)
        backward = _Backward(
            ctx.saved_call,
            ctx.saved_call.with_tensors(queries, keys, values),
            ctx.seed,
            learned=learned,
            to_output=to_output,
            # The term of the softmax's gradient that all scores of a row share.
            common=(to_output * output).sum(-1) - to_log_sum_exp,
            log_sum_exp=log_sum_exp.masked_fill(log_sum_exp == -torch.inf, 0.0),
            gradients=[torch.zeros_like(part, dtype=output.dtype) for part in inputs],
        )
        backward.run()
        return None, None, *(found.to(part.dtype) for found, part in zip(backward.gradients, inputs, strict=True))


@dataclass
class _Blocks:
    """The state of a pass over the blocks of a call, forward or backward."""

    saved_call: SavedCall
    call: Call
    seed: int
    """Seed of the dropout: both passes drop the same weights."""

    @property
    def precise(self) -> torch.dtype:
        """The precision of everything except the scores."""
        return torch.promote_types(self.call.queries.dtype, torch.float32)

    def spans(self) -> Iterator[tuple[range, list[range]]]:
        """Spans of queries, each with the spans of keys that they may look at."""
        call = self.call
        count, total = call.queries.shape[-2], call.keys.shape[-2]
        pairs = max(1, BLOCK // max(1, call.leading.numel() * call.score.footprint(call.queries.shape[-1])))
        height = min(max(1, count), math.isqrt(pairs))
        breadth = pairs // height
        for top in range(0, count, height):
            rows = range(top, min(count, top + height))
            reach = range(total) if call.mask is None else call.mask.reach(rows, total)
            yield (
                rows,
                [range(left, min(reach.stop, left + breadth)) for left in range(reach.start, reach.stop, breadth)],
            )

    def keep(self, rows: range, columns: range, like: Tensor) -> Tensor:
        """The dropout factors of one block, 0 or 1 / (1 - dropout); the same in both passes."""
        if like.device.type == "meta":  # which has no random numbers
            return torch.empty_like(like)
        seed = self.seed + rows.start * (self.call.keys.shape[-2] + 1) + columns.start
        generator = torch.Generator(like.device).manual_seed(seed)
        kept = torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator) >= self.call.dropout
        return kept / (1 - self.call.dropout)

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """A matrix product in at least single precision."""
        with without_autocast(left.device):
            return left.to(self.precise) @ right.to(self.precise)


class _Forward(_Blocks):
    def run(self) -> tuple[Tensor, Tensor]:
        """The output and the log-sum-exp."""
        queries, values = self.call.queries, self.call.values
        output = queries.new_empty(*queries.shape[:-1], values.shape[-1], dtype=self.precise)
        log_sum_exp = queries.new_empty(queries.shape[:-1], dtype=self.precise)
        with scratch.reuse():
            for rows, spans in self.spans():
                over = slice(rows.start, rows.stop)
                output[..., over, :], log_sum_exp[..., over] = self.row_of_blocks(rows, spans)
        return output, log_sum_exp

    def row_of_blocks(self, rows: range, spans: list[range]) -> tuple[Tensor, Tensor]:
        """Output and log-sum-exp of the queries `rows`, over all blocks of keys."""
        call = self.call
        shape = (*call.leading, len(rows))
        sinks = call.select.sinks
        if sinks is None:
            highest = call.queries.new_full(shape, -torch.inf, dtype=self.precise)
        else:  # keys that were seen already
            highest = sinks.to(self.precise)[..., None].expand(shape)
        total = torch.full_like(highest, float(sinks is not None))
        summed = highest.new_zeros(*shape, call.values.shape[-1])
        for columns in spans:
            scratch.next_block()
            with self.saved_call.autocast():
                scores = call.scores(rows, columns)
            scores = scores.to(self.precise)
            higher = torch.maximum(highest, scores.amax(-1))
            shift = higher.masked_fill(higher == -torch.inf, 0.0)
            shares = (scores - shift.unsqueeze(-1)).exp_()  # in place: the subtraction made a copy
            shrink = (highest - shift).exp_()
            total = total * shrink + shares.sum(-1)
            if call.dropout:
                shares = shares * self.keep(rows, columns, shares)
            values = call.values[..., columns.start : columns.stop, :]
            summed = summed * shrink.unsqueeze(-1) + self.product(shares, values)
            highest = higher
        return summed / total.masked_fill(total == 0, 1.0).unsqueeze(-1), highest + total.log()


@dataclass
class _Backward(_Blocks):
    learned: list[Tensor]
    to_output: Tensor
    common: Tensor
    log_sum_exp: Tensor
    gradients: list[Tensor]
    """Gradients of queries, keys, values and learned tensors, summed over the blocks."""

    def run(self) -> None:
        with scratch.reuse():
            for rows, spans in self.spans():
                for columns in spans:
                    self.add_block(rows, columns)
        sinks = self.call.select.sinks
        if sinks is not None and sinks.requires_grad:
            shares = (sinks.detach().to(self.precise)[..., None] - self.log_sum_exp).exp_()
            self.gradients[-1] -= (shares * self.common).sum_to_size(*sinks.shape, 1).squeeze(-1)

    def add_block(self, rows: range, columns: range) -> None:
        """Add the contribution of one block to all gradients."""
        scratch.next_block()
        call, over, along = self.call, slice(rows.start, rows.stop), slice(columns.start, columns.stop)
        q = call.queries[..., over, :].detach().requires_grad_()
        k = call.keys[..., along, :].detach().requires_grad_()
        with torch.enable_grad(), self.saved_call.autocast():
            scores = call.finish(call.score.block(q, k), q, rows, columns)
        shares = (scores.detach().to(self.precise) - self.log_sum_exp[..., over, None]).exp_()
        to_output = self.to_output[..., over, :]
        to_shares = self.product(to_output, call.values[..., along, :].mT)
        kept = shares
        if call.dropout:
            keep = self.keep(rows, columns, shares)
            kept, to_shares = shares * keep, to_shares * keep
        to_scores = shares * to_shares.sub_(self.common[..., over, None])
        found = torch.autograd.grad(scores, (q, k, *self.learned), to_scores.to(scores.dtype), allow_unused=True)
        to_queries, to_keys, to_values, *to_learned = self.gradients
        to_values[..., along, :] += self.product(kept.mT, to_output)
        totals = (to_queries[..., over, :], to_keys[..., along, :], *to_learned)
        for total, part in zip(totals, found, strict=True):
            if part is not None:  # the score does not depend on it
                total += part
