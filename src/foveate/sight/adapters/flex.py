"""Translates calls of `torch.nn.attention.flex_attention`, whose scores and masks are functions of the user.

A function mode does not receive `flex_attention` itself, but the operator that it calls if nothing is compiled.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch._higher_order_ops.flex_attention import flex_attention as operator
from torch.nn.attention.flex_attention import _identity, noop_mask

from foveate.attention.call import Call
from foveate.attention.masks import Mask
from foveate.attention.scores import Score
from foveate.sight.call_adapter import CallAdapter

__all__ = ["flex_call", "operator"]

Function = Callable[..., Tensor]

POSITIONS = 4
"""Numbers appended to each prepared query and key: example, head and position of a query, position of a key."""


def flex_call(
    adapter: CallAdapter,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Function,
    block_mask: tuple[Any, ...],
    scale: float,
    *_: Any,
) -> Call:
    """The call that the operator of flex_attention makes for these arguments."""
    call = adapter.call(query, key, value, scale=scale)
    mask_mod, (examples, heads) = block_mask[-1], block_mask[2].shape[:2]
    if mask_mod is not noop_mask:
        call = replace(call, mask=MaskFunction(mask_mod, examples, heads, tuple(call.leading[1:])))
    if score_mod is not _identity:
        score, queries = ScoreFunction(score_mod, scale), _with_positions(call.queries, call.leading)
        call = replace(call, score=score, queries=queries, keys=_with_position(call.keys))
    return call


@dataclass(frozen=True, eq=False)
class ScoreFunction(Score):
    """A scaled dot product that `function(score, example, head, query, key)` of five scalars modifies.

    Prepared queries and keys contain their positions, so that any part of them can be scored.
    """

    function: Function
    factor: float

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        scores = queries[..., :-POSITIONS] @ keys[..., :-POSITIONS].mT * self.factor
        example, head, position = queries[..., -POSITIONS:-1].int().unbind(-1)
        rows, columns, leading = scores.shape[-2], scores.shape[-1], scores.shape[:-2]
        of_rows = [part.expand(*leading, rows).reshape(-1, rows) for part in (example, head, position)]
        of_keys = keys[..., -1].int().expand(*leading, columns).reshape(-1, columns)
        along = torch.vmap(self.function, in_dims=(0, None, None, None, 0))
        down = torch.vmap(along, in_dims=(0, 0, 0, 0, None))
        with TransformGetItemToIndex():
            changed = torch.vmap(down)(scores.reshape(-1, rows, columns), *of_rows, of_keys)
        return changed.reshape(scores.shape)

    def tensors(self) -> tuple[Tensor, ...]:
        return _captured(self.function)


@dataclass(frozen=True, eq=False)
class MaskFunction(Mask):
    """A mask that `function(example, head, query, key)` of four scalars defines."""

    function: Function
    examples: int
    """1 if the mask is the same for all examples."""
    heads: int
    """1 if the mask is the same for all heads."""
    groups: tuple[int, ...]
    """The dimensions of the heads in the call."""

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        positions = [torch.arange(count, device=device) for count in (self.examples, self.heads)]
        positions += [torch.arange(span.start, span.stop, device=device) for span in (rows, columns)]
        function = self.function
        for dimension in (3, 2, 1, 0):
            function = torch.vmap(function, in_dims=tuple(0 if other == dimension else None for other in range(4)))
        with TransformGetItemToIndex():
            allowed = function(*positions)
        if len(self.groups) == 1:
            return allowed
        return allowed.unsqueeze(2) if self.heads == 1 else allowed.unflatten(1, self.groups)

    def shape(self, leading: int) -> torch.Size:
        heads = self.groups if self.heads > 1 else (1,) * len(self.groups)
        return torch.Size((self.examples, *heads, 1, 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return _captured(self.function)


def _with_positions(queries: Float[Tensor, "... T D"], leading: torch.Size) -> Float[Tensor, "... T P"]:
    """Append to each query its example, head and position, and a 0."""
    steps, kind = queries.shape[-2], torch.promote_types(queries.dtype, torch.float32)
    positions = queries.new_zeros(*leading, steps, POSITIONS, dtype=kind)
    heads = torch.arange(leading[1:].numel(), device=queries.device).reshape(*leading[1:], 1)
    positions[..., 0] = torch.arange(leading[0], device=queries.device).reshape(-1, *(1,) * len(leading))
    positions[..., 1] = heads.view(*leading[1:], 1)
    positions[..., 2] = torch.arange(steps, device=queries.device)
    return torch.cat([queries.detach().to(kind).expand(*leading, -1, -1), positions], -1)


def _with_position(keys: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
    """Append to each key three zeros and its position."""
    kind = torch.promote_types(keys.dtype, torch.float32)
    positions = keys.new_zeros(*keys.shape[:-1], POSITIONS, dtype=kind)
    positions[..., -1] = torch.arange(keys.shape[-2], device=keys.device)
    return torch.cat([keys.detach().to(kind), positions], -1)


def _captured(function: Any) -> tuple[Tensor, ...]:
    """The tensors that a function reads besides its arguments, as far as they can be found."""
    if isinstance(function, Tensor):
        return (function,)
    if isinstance(function, (list, tuple)):
        parts: list[Any] = list(function)
    elif inspect.isfunction(function):
        captured = inspect.getclosurevars(function)
        parts = [
            *captured.nonlocals.values(),
            *(part for part in captured.globals.values() if isinstance(part, Tensor)),
        ]
    else:
        return ()
    return tuple(tensor for part in parts for tensor in _captured(part))
