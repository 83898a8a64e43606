"""Reports the functions of the flash-attn package.

They are plain functions that torch does not know. So while a look is open, each is replaced in every Python module that
has it as an attribute. Their causal masks and windows are aligned with the last key, texts of a batch may be packed in
one row, and a cache may be longer than its content.

Tested on a CPU with a substitute in plain torch that has the same signatures (flash-attn 2.8), since the package needs
a GPU.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.biases import Bias
from foveate.attention.call import Call
from foveate.attention.masks import Mask
from foveate.sight.call_adapter import CallAdapter
from foveate.sight.watcher import Watcher

PACKAGE = "flash_attn"

NAMES = (
    *("flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func", "flash_attn_with_kvcache"),
    *("flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func", "flash_attn_varlen_qkvpacked_func"),
)

EVERYWHERE = (-1, -1)
"""The window of a call without a window."""


@contextmanager
def attach(watcher: Watcher, adapter: CallAdapter) -> Iterator[None]:
    """Report calls of flash-attn while the context is open. Does nothing if the package is not imported."""
    library = sys.modules.get(PACKAGE)
    originals = [getattr(library, name) for name in NAMES if hasattr(library, name)]
    wrapped = [_report_calls(function, watcher, adapter) for function in originals]
    _replace_functions(originals, wrapped)
    try:
        yield
    finally:
        _replace_functions(wrapped, originals)  # also in modules that were imported meanwhile


def _replace_functions(old: Sequence[Callable[..., Any]], new: Sequence[Callable[..., Any]]) -> None:
    """Replace functions by others in every Python module."""
    others = {id(function): other for function, other in zip(old, new, strict=True)}
    for module in list(sys.modules.values()) if others else ():
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in others:
                setattr(module, name, others[id(value)])


def _report_calls(function: Callable[..., Any], watcher: Watcher, adapter: CallAdapter) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @wraps(function)
    def attend(*args: Any, **kwargs: Any) -> Any:
        if not watcher.watching:
            watcher.skip()
            return function(*args, **kwargs)
        with watcher.inside_call():
            result = function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        output = result[0] if isinstance(result, tuple) else result
        if (changed := watcher.change(lambda: flash_call(adapter, bound.arguments))) is not None:
            found = changed.output.reshape(_heads_first(output).shape).to(output.dtype)
            found = _heads_first(found).reshape(output.shape)  # the same exchange of two dimensions leads back
            return (found, *result[1:]) if isinstance(result, tuple) else found
        watcher.record(flash_call(adapter, bound.arguments), Attended(_heads_first(output)))
        return result

    return attend


def flash_call(adapter: CallAdapter, given: dict[str, Any]) -> Call:
    """The call that one of the functions makes for these named arguments."""
    query, key, value = (_heads_first(part) for part in _parts(given))
    positions = _positions(given, query.shape[-2], key.shape[-2], query.device)
    window = tuple(given.get("window_size") or EVERYWHERE)
    return with_positions(
        adapter.call(
            query,
            key,
            value,
            scale=given.get("softmax_scale"),
            cap=given.get("softcap") or None,
            dropout=given.get("dropout_p") or 0.0,
        ),
        positions,
        (window[0], 0 if given.get("causal") else window[1]),
        given.get("alibi_slopes"),
    )


def with_positions(
    call: Call, positions: "TextPositions", window: tuple[int, int], slopes: Tensor | None = None
) -> Call:
    """The call with a mask: a query attends to keys of its own text, within `window` = (before, after) positions.

    A negative number is not a limit. `slopes` (H,) or (B, H) are those of ALiBi.
    """
    if slopes is not None:
        slopes = slopes.detach().reshape(-1 if slopes.ndim == 2 else 1, *call.leading[1:], 1, 1)
    bias = None if slopes is None else AlibiBias(positions, slopes)
    return replace(call, mask=WindowMask(positions, *window), bias=bias)


def _parts(given: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, (B, T, H, D) or packed (T, H, D), also from one joint tensor or from a cache."""
    if "qkv" in given:
        query, key, value = given["qkv"].unbind(-3)
        return query, key, value
    if "kv" in given:
        return (given["q"], *given["kv"].unbind(-3))
    if "k_cache" not in given:
        return given["q"], _paged(given["k"], given), _paged(given["v"], given)
    return given["q"], _paged(given["k_cache"], given), _paged(given["v_cache"], given)


def _paged(cache: Tensor, given: dict[str, Any]) -> Tensor:
    """Keys or values of each example, which may be in pages of a pool or in other rows of the cache."""
    if given.get("block_table") is not None:
        return cache[given["block_table"].long()].flatten(1, 2)
    rows = given.get("cache_batch_idx")
    return cache if rows is None else cache[rows.long()]


def _positions(given: dict[str, Any], steps: int, keys: int, device: torch.device) -> "TextPositions":
    if "cu_seqlens" in given:
        return packed_positions(given["cu_seqlens"], given["cu_seqlens"], steps, keys)
    if "cu_seqlens_q" in given:
        return packed_positions(given["cu_seqlens_q"], given["cu_seqlens_k"], steps, keys)
    lengths = given.get("cache_seqlens")
    added = 0 if given.get("k") is None or "k_cache" not in given else given["k"].shape[1]
    lengths = torch.as_tensor(keys if lengths is None else lengths, device=device).reshape(-1, 1)
    lengths = lengths + (added if given.get("cache_seqlens") is not None else 0)
    along, first = torch.arange(keys, device=device), given.get("cache_leftpad")
    real = along < lengths
    if first is not None:
        real = real & (along >= first.reshape(-1, 1))
    own = torch.arange(steps, device=device) + lengths - steps
    return TextPositions(own, along[None], torch.zeros_like(own), torch.where(real, 0, -1))


def packed_positions(queries: Int[Tensor, "P"], keys: Int[Tensor, "P"], steps: int, count: int) -> "TextPositions":
    """Positions in packed texts, given where each text begins and, last, where the last one ends."""
    sides = []
    for starts, total in ((queries.long(), steps), (keys.long(), count)):
        along = torch.arange(total, device=starts.device)
        text = torch.searchsorted(starts, along, right=True) - 1
        text = text.clamp_max(len(starts) - 2)
        sides.append((along - starts[text], text))
    (query_positions, query_texts), (key_positions, key_texts) = sides
    more = (keys.diff() - queries.diff())[query_texts]
    return TextPositions((query_positions + more)[None], key_positions[None], query_texts[None], key_texts[None])


def padded_positions(real: Bool[Tensor, "B S"], steps: int) -> "TextPositions":
    """Positions in padded texts, where `real` marks tokens; the queries are those of the last `steps` keys."""
    positions, text = real.cumsum(-1) - 1, torch.where(real, 0, -1)
    return TextPositions(positions[:, -steps:], positions, torch.where(real, 0, -2)[:, -steps:], text)


@dataclass(frozen=True, eq=False)
class TextPositions:
    """Positions of queries and keys in their texts, for each example or for all; texts do not attend to each other."""

    queries: Int[Tensor, "#B T"]
    keys: Int[Tensor, "#B S"]
    query_texts: Int[Tensor, "#B T"]
    key_texts: Int[Tensor, "#B S"]

    def offsets(self, rows: range, columns: range, leading: int) -> Int[Tensor, "... T S"]:
        """Returns how many positions each key is before the query."""
        return _pairs(self.queries, self.keys, rows, columns, leading, torch.sub)

    def same_text(self, rows: range, columns: range, leading: int) -> Bool[Tensor, "... T S"]:
        """Returns whether query and key belong to one text."""
        return _pairs(self.query_texts, self.key_texts, rows, columns, leading, torch.eq)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.queries, self.keys, self.query_texts, self.key_texts)


def _pairs(
    queries: Tensor, keys: Tensor, rows: range, columns: range, leading: int, join: Callable[..., Any]
) -> Tensor:
    found = join(queries[:, rows.start : rows.stop, None], keys[:, None, columns.start : columns.stop])
    return found.reshape(len(found), *(1,) * (leading - 1), *found.shape[1:])


@dataclass(frozen=True, eq=False)
class WindowMask(Mask):
    """Allows keys of the same text, at most these numbers of positions before and after the query. A negative number
    sets no limit."""

    positions: TextPositions
    before: int
    after: int

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        allowed = self.positions.same_text(rows, columns, leading)
        offsets = self.positions.offsets(rows, columns, leading)
        if self.before >= 0:
            allowed = allowed & (offsets <= self.before)
        return allowed & (-offsets <= self.after) if self.after >= 0 else allowed

    def tensors(self) -> tuple[Tensor, ...]:
        return self.positions.tensors()


@dataclass(frozen=True, eq=False)
class AlibiBias(Bias):
    """`-slope * |distance|` for each head (ALiBi, Press et al. 2022)."""

    positions: TextPositions
    slopes: Float[Tensor, "... 1 1"]

    def block(self, queries: Float[Tensor, "... T D"], rows: range, columns: range) -> Float[Tensor, "... T S"]:
        return -self.slopes * self.positions.offsets(rows, columns, self.slopes.ndim - 2).abs()

    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.positions.tensors(), self.slopes)


def _heads_first(part: Tensor) -> Tensor:
    """Reshape (B, T, H, D), or (T, H, D) of packed texts, to (B, H, T, D)."""
    return (part if part.ndim == 4 else part[None]).transpose(1, 2)
