"""`torch.nn.attention.flex_attention`, whose scores and masks are functions that the user writes.

The function itself does not ask who listens, but the operator that it comes down to does, where nothing is compiled.
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
from foveate.sight.call_adapter import Translator

__all__ = ["flex", "operator"]

Function = Callable[..., Tensor]

PLACES = 4
"""So many numbers stand behind each prepared query and key: example, head and place of a query, place of a key."""


def flex(
    translator: Translator,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Function,
    block_mask: tuple,
    scale: float,
    *_: Any,
) -> Call:
    """The call that these arguments of flex_attention's operator lead to."""
    call = translator.call(query, key, value, scale=scale)
    mask_mod, (examples, heads) = block_mask[-1], block_mask[2].shape[:2]
    if mask_mod is not noop_mask:
        call = replace(call, mask=MaskFunction(mask_mod, examples, heads, tuple(call.leading[1:])))
    if score_mod is not _identity:
        score = ScoreFunction(score_mod, scale)
        call = replace(call, score=score, queries=_with_places(call.queries, call.leading), keys=_with_place(call.keys))
    return call


@dataclass(frozen=True, eq=False)
class ScoreFunction(Score):
    """A scaled dot product changed by `function(score, example, head, query, key)` of five scalars.

    What is prepared of queries and keys carries their places, so that any part of them can be scored.
    """

    function: Function
    factor: float

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        scores = queries[..., :-PLACES] @ keys[..., :-PLACES].mT * self.factor
        example, head, place = queries[..., -PLACES:-1].int().unbind(-1)
        rows, columns, leading = scores.shape[-2], scores.shape[-1], scores.shape[:-2]
        of_rows = [part.expand(*leading, rows).reshape(-1, rows) for part in (example, head, place)]
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
    """What `function(example, head, query, key)` of four scalars allows."""

    function: Function
    examples: int
    """1 where all examples are alike; and so for the heads."""
    heads: int
    groups: tuple[int, ...]
    """The dimensions that the heads have in the call."""

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        places = [torch.arange(count, device=device) for count in (self.examples, self.heads)]
        places += [torch.arange(span.start, span.stop, device=device) for span in (rows, columns)]
        function = self.function
        for dimension in (3, 2, 1, 0):
            function = torch.vmap(function, in_dims=tuple(0 if other == dimension else None for other in range(4)))
        with TransformGetItemToIndex():
            allowed = function(*places)
        if len(self.groups) == 1:
            return allowed
        return allowed.unsqueeze(2) if self.heads == 1 else allowed.unflatten(1, self.groups)

    def shape(self, leading: int) -> torch.Size:
        heads = self.groups if self.heads > 1 else (1,) * len(self.groups)
        return torch.Size((self.examples, *heads, 1, 1))

    def tensors(self) -> tuple[Tensor, ...]:
        return _captured(self.function)


def _with_places(queries: Float[Tensor, "... T D"], leading: torch.Size) -> Float[Tensor, "... T P"]:
    """Queries with the number of their example, head and place behind them, and room for a key's."""
    steps, kind = queries.shape[-2], torch.promote_types(queries.dtype, torch.float32)
    places = queries.new_zeros(*leading, steps, PLACES, dtype=kind)
    heads = torch.arange(leading[1:].numel(), device=queries.device).reshape(*leading[1:], 1)
    places[..., 0] = torch.arange(leading[0], device=queries.device).reshape(-1, *(1,) * len(leading))
    places[..., 1] = heads.view(*leading[1:], 1)
    places[..., 2] = torch.arange(steps, device=queries.device)
    return torch.cat([queries.detach().to(kind).expand(*leading, -1, -1), places], -1)


def _with_place(keys: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
    """Keys with their place behind them."""
    kind = torch.promote_types(keys.dtype, torch.float32)
    places = keys.new_zeros(*keys.shape[:-1], PLACES, dtype=kind)
    places[..., -1] = torch.arange(keys.shape[-2], device=keys.device)
    return torch.cat([keys.detach().to(kind), places], -1)


def _captured(function: Any) -> tuple[Tensor, ...]:
    """The tensors that a function reads besides its arguments, as far as can be told."""
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
