"""Calls of other libraries, told in foveate's own terms."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from foveate.attention.attend import SCALED_DOT, SOFT
from foveate.attention.biases import as_bias
from foveate.attention.call import Call
from foveate.attention.masks import Causal, Mask, as_mask
from foveate.attention.scores import ScaledDot, Score, SoftCapped
from foveate.attention.selection import Soft
from foveate.attention.shapes import cut
from foveate.sight.key_store import own
from foveate.sight.mutation_guard import REMEMBERED, Unwritten

HIDES = torch.finfo(torch.float16).min / 2
"""What is below this in a mask of numbers hides; libraries write -inf, or the least number of some type."""

Understood = tuple[Mask | None, Tensor | None, int]
"""A mask and the numbers to add that another library had put into one tensor, and how many keys anybody may see."""


def has_numbers(tensor: Tensor) -> bool:
    """Whether a tensor's numbers can be read: they cannot under vmap, nor where there are only shapes."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return False
        tensor = functorch.get_unwrapped(tensor)
    return not (tensor.is_meta or type(tensor).__name__ == "FakeTensor")


class Translator:
    """Makes a `Call` of what another library's attention is given."""

    def __init__(self) -> None:
        self._known: deque[tuple[tuple, Unwritten, Understood]] = deque(maxlen=REMEMBERED)
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
        """The call of (B, H, T, D) queries, or (B, T, D); more dimensions in front count as examples.

        Keys and values may have fewer heads than the queries, each for as many of those in a row. `mask` holds booleans
        (True: may look) or numbers to add. All has the type that autocast gives it.
        """
        queries, keys, values = (_cast(part) for part in (queries, keys, values))
        if queries.ndim > 4:
            queries, keys, values = _of_one_shape(queries, keys, values)
            mask = None if mask is None else _like(mask, queries).flatten(0, -4)
            queries, keys, values = (part.flatten(0, -4) for part in (queries, keys, values))
        if queries.ndim == 3 and 1 < keys.shape[0] < queries.shape[0]:  # heads of one example
            queries, keys, values = (part.unsqueeze(0) for part in (queries, keys, values))
        if queries.ndim == 4 and keys.shape[1] < queries.shape[1]:
            groups = (keys.shape[1], queries.shape[1] // keys.shape[1])
            mask = None if mask is None else _grouped(mask, groups)
            sinks = None if sinks is None else sinks.unflatten(0, groups)
            queries, keys, values = queries.unflatten(1, groups), keys.unsqueeze(2), values.unsqueeze(2)
        steps, count = queries.shape[-2], keys.shape[-2]
        allowed, numbers, seen = (None, None, count) if mask is None else self._understood(mask, steps, keys)
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

    def _understood(self, mask: Tensor, steps: int, keys: Tensor) -> Understood:
        """What a tensor means; that of the last few is remembered."""
        name = (mask.data_ptr(), mask.dtype, mask.shape, mask.stride(), steps, keys.shape[-2])
        for known, lent, meaning in self._known:
            if known == name and lent.holds:
                return meaning
        with torch.inference_mode(False), torch.no_grad():
            meaning = self._meaning(mask.detach(), steps, keys)
        self._known.append((name, Unwritten(mask), meaning))
        return meaning

    def _meaning(self, mask: Tensor, steps: int, all_keys: Tensor) -> Understood:
        keys = all_keys.shape[-2]
        allowed = mask if mask.dtype == torch.bool else mask >= HIDES
        # A row of one low number alone looks at all its keys alike, and hides none.
        alike = mask.dtype != torch.bool and bool((~allowed.any(-1) & (mask != -torch.inf).any(-1)).any())
        if steps < keys == mask.shape[-1] and not alike:
            places = allowed.flatten(0, -2).any(0).nonzero()
            used = int(places.max()) + 1 if len(places) else keys
            if not all_keys[..., used:, :].any():  # the rest of a cache that is not full yet
                keys, mask, allowed = used, mask[..., :used], allowed[..., :used]
        if alike or (mask.dtype != torch.bool and bool(mask.masked_fill(~allowed, 0).any())):
            return None, own(mask), keys
        if allowed.all():
            return None, None, keys
        if steps == 1 or mask.shape[-2] == 1:
            return self._growing(allowed), None, keys
        whole = torch.ones(steps, keys, dtype=torch.bool, device=mask.device).tril(keys - steps)
        return Causal(keys - steps) if bool((allowed == whole).all()) else as_mask(allowed), None, keys

    def _growing(self, mask: Bool[Tensor, "... 1 S"]) -> Mask:
        """One row for all queries; the same as that of the step before where it only grew."""
        row = self._row
        if row is not None and torch.equal(mask[..., : row.tensor.shape[-1]], row.tensor):
            row.tensor = own(mask)
            return row
        self._row = _GrowingRow(own(mask))
        return self._row


@dataclass(eq=False)
class _GrowingRow(Mask):
    """The padding of a batch while it is written token by token: kept once, in its longest form."""

    tensor: Bool[Tensor, "... 1 S"]

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return cut(self.tensor, rows, columns)

    @property
    def rowwise(self) -> bool:
        return False


def _cast(tensor: Tensor) -> Tensor:
    device = tensor.device.type
    casts = torch.is_autocast_enabled(device) and tensor.dtype is not torch.float64  # which autocast leaves as it is
    return tensor.to(torch.get_autocast_dtype(device)) if casts else tensor


def _of_one_shape(*parts: Tensor) -> Iterator[Tensor]:
    """Tensors (..., H, T, D) with the same leading dimensions before the heads."""
    leading = torch.broadcast_shapes(*(part.shape[:-3] for part in parts))
    return (part.expand(*leading, *part.shape[-3:]) for part in parts)


def _like(mask: Tensor, queries: Tensor) -> Tensor:
    """A mask with all leading dimensions of the queries."""
    own_heads = mask.shape[-3] if mask.ndim >= 3 else 1
    rows = mask.shape[-2:] if mask.ndim >= 2 else (1, mask.shape[-1])
    return mask.expand(*queries.shape[:-3], own_heads, *rows)


def _grouped(mask: Tensor, groups: tuple[int, int]) -> Tensor:
    """A mask for heads in groups, whose dimension becomes two."""
    if mask.ndim < 3:
        return mask
    return mask.unsqueeze(-3) if mask.shape[-3] == 1 else mask.unflatten(-3, groups)
