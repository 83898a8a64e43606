"""Translates attention calls of other libraries into foveate's `Call`."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from foveate.attention.attend import SCALED_DOT, SOFT
from foveate.attention.biases import as_bias
from foveate.attention.call import Call
from foveate.attention.masks import Causal, Mask, as_mask
from foveate.attention.scores import ScaledDot, Score, SoftCapped
from foveate.attention.selection import Soft
from foveate.attention.shapes import broadcast, cut
from foveate.sight.key_store import copy_tensor
from foveate.sight.mutation_guard import CACHE_SIZE, MutationGuard

MASKED_BELOW = torch.finfo(torch.float16).min / 2
"""Values of a float mask below this hide a key; libraries use -inf, or the smallest number of some dtype."""

MaskMeaning = tuple[Mask | None, Tensor | None, int]
"""What a mask tensor of another library means: a mask, a bias, and the number of keys that queries may attend to."""


def has_values(tensor: Tensor) -> bool:
    """Returns whether a tensor's values can be read: not under vmap, and not if it has only a shape."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return False
        tensor = functorch.get_unwrapped(tensor)
    return not (tensor.is_meta or type(tensor).__name__ == "FakeTensor")


class CallAdapter:
    """Makes a `Call` from the arguments of another library's attention function."""

    def __init__(self) -> None:
        self._interpreted: deque[tuple[tuple[Any, ...], MutationGuard, MaskMeaning]] = deque(maxlen=CACHE_SIZE)
        self._row: _GrowingRow | None = None

    def call(
        self,
        queries: Float[Tensor, "... T D"],
        keys: Float[Tensor, "... S D"],
        values: Float[Tensor, "... S V"],
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        scale: float | None = None,
        cap: float | None = None,
        sinks: Float[Tensor, "H"] | None = None,
        dropout: float = 0.0,
    ) -> Call:
        """The call of queries (B, H, T, D) or (B, T, D); further leading dimensions count as examples.

        Keys and values may have fewer heads than queries, each for a group of consecutive query heads. `mask` has
        booleans (True: may attend) or numbers to add. Tensors are cast as autocast would cast them.
        """
        queries, keys, values = (_cast(part) for part in (queries, keys, values))
        if queries.ndim > 4:
            queries, keys, values = _broadcast_leading(queries, keys, values)
            mask = None if mask is None else _expand_mask(mask, queries).flatten(0, -4)
            queries, keys, values = (part.flatten(0, -4) for part in (queries, keys, values))
        if queries.ndim == 3 and 1 < keys.shape[0] < queries.shape[0]:  # the heads of one example
            queries, keys, values = (part.unsqueeze(0) for part in (queries, keys, values))
        if queries.ndim == 4 and keys.shape[1] < queries.shape[1]:
            groups = (keys.shape[1], queries.shape[1] // keys.shape[1])
            mask = None if mask is None else _group_heads(mask, groups)
            sinks = None if sinks is None else sinks.unflatten(0, groups)
            queries, keys, values = queries.unflatten(1, groups), keys.unsqueeze(2), values.unsqueeze(2)
        steps, count = queries.shape[-2], keys.shape[-2]
        allowed, numbers, seen = (None, None, count) if mask is None else self._interpret_cached(mask, steps, keys)
        keys, values = keys[..., :seen, :], values[..., :seen, :]
        if causal:
            allowed = Causal(0) if allowed is None else allowed & Causal(0)
        score: Score = SCALED_DOT if scale is None else ScaledDot(scale)
        return Call(
            queries,
            keys,
            values,
            score if cap is None else SoftCapped(score, cap),
            allowed,
            None if numbers is None else as_bias(numbers),
            SOFT if sinks is None else Soft(sinks.detach()),
            dropout,
            full=False,
        )

    def _interpret_cached(self, mask: Tensor, steps: int, keys: Tensor) -> MaskMeaning:
        """The meaning of a mask tensor; recent ones are cached."""
        key = (mask.data_ptr(), mask.dtype, mask.shape, mask.stride(), steps, keys.shape[-2])
        for known, guard, meaning in self._interpreted:
            if known == key and guard.unchanged:
                return meaning
        with torch.inference_mode(False), torch.no_grad():
            meaning = self._interpret(mask.detach(), steps, keys)
        self._interpreted.append((key, MutationGuard(mask), meaning))
        return meaning

    def _interpret(self, mask: Tensor, steps: int, all_keys: Tensor) -> MaskMeaning:
        keys = all_keys.shape[-2]
        allowed = mask if mask.dtype == torch.bool else mask >= MASKED_BELOW
        # A row in which every key has a low number hides none: its softmax is uniform.
        uniform = mask.dtype != torch.bool and bool((~allowed.any(-1) & (mask != -torch.inf).any(-1)).any())
        if steps < keys == mask.shape[-1] and not uniform:
            visible = allowed.flatten(0, -2).any(0).nonzero()
            used = int(visible.max()) + 1 if len(visible) else keys
            if not all_keys[..., used:, :].any():  # the unused end of a static cache
                keys, mask, allowed = used, mask[..., :used], allowed[..., :used]
        if uniform or (mask.dtype != torch.bool and bool(mask.masked_fill(~allowed, 0).any())):
            return None, copy_tensor(mask), keys
        if allowed.all():
            return None, None, keys
        if steps == 1 or mask.shape[-2] == 1:
            return self._extend_row(allowed), None, keys
        causal = torch.ones(steps, keys, dtype=torch.bool, device=mask.device).tril(keys - steps)
        return Causal(keys - steps) if bool((allowed == causal).all()) else as_mask(allowed), None, keys

    def _extend_row(self, mask: Bool[Tensor, "... 1 S"]) -> Mask:
        """The mask of one row for all queries. If it extends the row of the previous step, the same object is used."""
        row = self._row
        if row is not None and torch.equal(mask[..., : row.tensor.shape[-1]], row.tensor):
            row.tensor = copy_tensor(mask)
            return row
        self._row = _GrowingRow(copy_tensor(mask))
        return self._row


@dataclass(eq=False)
class _GrowingRow(Mask):
    """The padding mask of a batch during generation: stored once, in its longest form."""

    tensor: Bool[Tensor, "... 1 S"]

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return cut(self.tensor, rows, columns)

    @property
    def rowwise(self) -> bool:
        return False


def _cast(tensor: Tensor) -> Tensor:
    device = tensor.device.type
    casts = torch.is_autocast_enabled(device) and tensor.dtype is not torch.float64  # autocast does not cast float64
    return tensor.to(torch.get_autocast_dtype(device)) if casts else tensor


def _broadcast_leading(*parts: Tensor) -> Iterator[Tensor]:
    """Tensors (..., H, T, D) with the same leading dimensions before the heads."""
    leading = broadcast(*(part.shape[:-3] for part in parts))
    return (part.expand(*leading, *part.shape[-3:]) for part in parts)


def _expand_mask(mask: Tensor, queries: Tensor) -> Tensor:
    """Expand a mask to all leading dimensions of the queries."""
    heads = mask.shape[-3] if mask.ndim >= 3 else 1
    rows = mask.shape[-2:] if mask.ndim >= 2 else (1, mask.shape[-1])
    return mask.expand(*queries.shape[:-3], heads, *rows)


def _group_heads(mask: Tensor, groups: tuple[int, int]) -> Tensor:
    """Split the head dimension of a mask into groups."""
    if mask.ndim < 3:
        return mask
    return mask.unsqueeze(-3) if mask.shape[-3] == 1 else mask.unflatten(-3, groups)
