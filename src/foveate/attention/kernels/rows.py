"""Attention for some queries at a time, with all their keys: any selection, in memory that is linear in T and S.

The softmax is computed over blocks of keys with a running sum. Other rules, a threshold, the largest scores, a sample,
need a whole row of scores; those of a few queries fit into memory. The backward pass computes them again. Where a query
goes on from the one before it, the state between the queries of one time and those of the next is kept: S sqrt(T).
"""

from collections.abc import Iterator
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.kernels.recompute import SavedCall, draw_seed
from foveate.attention.selection import Attended, log_sum_exp

BLOCK = 2**21
"""The most scores at a time, unless those of one query are more: 8 MiB in single precision."""

PARTS = {"output": -2, "log_sum_exp": -1, "log_prob": -1, "entropy": -1, "choice": -1}
"""What is found, and the dimension of its queries."""


def attend(call: Call) -> Attended:
    leading = call.leading
    queries, keys, values = (part.expand(*leading, *part.shape[-2:]) for part in (call.queries, call.keys, call.values))
    learned = list({id(part): part for part in call.tensors() if part.requires_grad}.values())
    seed = draw_seed(call.generator)
    found = _Rows.apply(call, seed, queries, keys, values, *learned)  # type: ignore[no-untyped-call]
    earlier, count = call.select.earlier, queries.shape[-2]
    state = call.scores(range(max(0, count - earlier), count)) if call.full and earlier else None
    return Attended(**dict(zip(PARTS, found, strict=True)), state=state)


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: Call, seed: int, queries: Tensor, keys: Tensor, values: Tensor, *learned: Tensor
    ) -> tuple[Tensor | None, ...]:
        ctx.saved_call, ctx.seed, ctx.count = SavedCall.of(call), seed, len(learned)
        ctx.set_materialize_grads(False)
        whole = ctx.saved_call.with_tensors(queries, keys, values)
        parts, ctx.states, state = [], [], None
        for rows in _spans(whole):
            part = _attended(ctx.saved_call, whole, rows, _of(queries, whole.around(rows)), seed, state)
            parts.append(part)
            ctx.states.append(state)
            state = part.state
        found = [_joined([getattr(part, name) for part in parts], side) for name, side in PARTS.items()]
        if found[-1] is not None:
            ctx.mark_non_differentiable(found[-1])
        # Also tensors without gradients: autograd then raises an error if they were modified in place.
        ctx.save_for_backward(queries, keys, values, *learned, *call.tensors())
        return tuple(found)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        queries, keys, values, *read = ctx.saved_tensors
        learned = read[: ctx.count]
        gradients = [torch.zeros_like(part) for part in (queries, keys, values, *learned)]
        keys, values = keys.detach().requires_grad_(), values.detach().requires_grad_()
        whole = ctx.saved_call.with_tensors(queries, keys, values)
        to_state: Tensor | None = None
        for rows, before in reversed([*zip(_spans(whole), ctx.states, strict=True)]):
            seen = whole.around(rows)
            own = _of(queries, seen).detach().requires_grad_()
            state = None if before is None else before.detach().requires_grad_()
            with torch.enable_grad():
                found = _attended(ctx.saved_call, whole, rows, own, ctx.seed, state)
            outputs, to_outputs = ([], []) if to_state is None else ([found.state], [to_state])
            for (name, side), to_whole in zip(PARTS.items(), given, strict=True):
                part = getattr(found, name)
                if to_whole is not None and part is not None and part.requires_grad:
                    outputs.append(part)
                    to_outputs.append(to_whole.narrow(side, rows.start, len(rows)))
            if not outputs:
                continue
            sources, totals = (own, keys, values, *learned), (_of(gradients[0], seen), *gradients[1:])
            left = () if state is None else (state,)
            parts = torch.autograd.grad(outputs, (*sources, *left), to_outputs, allow_unused=True)
            to_state = parts[-1] if left else None
            for total, part in zip(totals, parts[: len(totals)], strict=True):
                if part is not None:  # what was found does not depend on it
                    total += part
        return None, None, *gradients


def _spans(call: Call) -> Iterator[range]:
    """As many queries at a time as fit."""
    count = call.queries.shape[-2]
    row = call.leading.numel() * call.keys.shape[-2] * call.score.footprint(call.queries.shape[-1])
    height = max(1, BLOCK // max(1, row), isqrt(count) if call.select.goes_on else 0)
    for begin in range(0, max(1, count), height):
        yield range(begin, min(count, begin + height))


def _of(queries: Tensor, rows: range) -> Tensor:
    return queries[..., rows.start : rows.stop, :]


def _attended(saved: SavedCall, call: Call, rows: range, queries: Tensor, seed: int, state: Tensor | None) -> Attended:
    """What the queries of some rows find, given with those before them that matter and the state that they go on from.
    Both passes draw the same random numbers."""
    seen = call.around(rows)
    device = call.queries.device
    generator = None if device.type == "meta" else torch.Generator(device).manual_seed(seed + rows.start)
    with saved.autocast():
        scores = call.finish(call.score.block(queries, call.keys), queries, seen, range(call.keys.shape[-2]))
        found = call.select.for_queries(queries).select(scores, call.values, call.dropout, state, generator)
        if call.full:
            found.log_sum_exp = log_sum_exp(scores, call.select.sinks)
    own = ((name, getattr(found, name), side) for name, side in PARTS.items())
    kept = {name: part.narrow(side, len(seen) - len(rows), len(rows)) for name, part, side in own if part is not None}
    return Attended(**kept, state=found.state if call.select.goes_on else None)


def _joined(parts: list[Tensor | None], side: int) -> Tensor | None:
    return None if parts[0] is None else torch.cat([part for part in parts if part is not None], side)
