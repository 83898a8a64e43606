"""The functions of the flash-attn package, for models that attend by them.

They are plain functions that torch knows nothing of, so while a look is open each is replaced wherever a module holds
it by name. Their causality and windows count from the last key, texts of a batch may be packed one behind the other,
and a cache may be longer than what is in it.

Tried on a CPU against a stand-in of the same signatures (flash-attn 2.8) that computes by plain torch; the package
itself needs a GPU.
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
from foveate.sight.call_adapter import Translator
from foveate.sight.recorder import Recorder

PACKAGE = "flash_attn"

NAMES = (
    *("flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func", "flash_attn_with_kvcache"),
    *("flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func", "flash_attn_varlen_qkvpacked_func"),
)

EVERYWHERE = (-1, -1)
"""The window of a call that has none."""


@contextmanager
def attach(recorder: Recorder, translator: Translator) -> Iterator[None]:
    """Note what is attended by flash-attn while open; nothing where the package is not in use."""
    library = sys.modules.get(PACKAGE)
    originals = [getattr(library, name) for name in NAMES if hasattr(library, name)]
    noting = [_noting(function, recorder, translator) for function in originals]
    _exchange(originals, noting)
    try:
        yield
    finally:
        _exchange(noting, originals)  # also where it was imported meanwhile


def _exchange(old: Sequence[Callable], new: Sequence[Callable]) -> None:
    """Put functions in the place of others, wherever a module has these."""
    others = {id(function): other for function, other in zip(old, new, strict=True)}
    for module in list(sys.modules.values()) if others else ():
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in others:
                setattr(module, name, others[id(value)])


def _noting(function: Callable, recorder: Recorder, translator: Translator) -> Callable:
    signature = inspect.signature(function)

    @wraps(function)
    def attend(*args: Any, **kwargs: Any) -> Any:
        if not recorder.listening:
            recorder.unheard()
            return function(*args, **kwargs)
        with recorder.attending():
            result = function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        output = result[0] if isinstance(result, tuple) else result
        recorder.note(call(translator, bound.arguments), Attended(_heads_first(output)))
        return result

    return attend


def call(translator: Translator, given: dict[str, Any]) -> Call:
    """The call that these arguments of one of the functions lead to, by their names."""
    query, key, value = (_heads_first(part) for part in _parts(given))
    places = _places(given, query.shape[-2], key.shape[-2], query.device)
    window = tuple(given.get("window_size") or EVERYWHERE)
    return placed(
        translator.call(
            query,
            key,
            value,
            scale=given.get("softmax_scale"),
            cap=given.get("softcap") or None,
            dropout=given.get("dropout_p") or 0.0,
        ),
        places,
        (window[0], 0 if given.get("causal") else window[1]),
        given.get("alibi_slopes"),
    )


def placed(found: Call, places: "Places", window: tuple[int, int], slopes: Tensor | None = None) -> Call:
    """A call whose queries look at keys of their own text, so many behind and so many before their own place.

    A negative number of those is no limit. `slopes` (H,) or (B, H) are ALiBi's.
    """
    if slopes is not None:
        slopes = slopes.detach().reshape(-1 if slopes.ndim == 2 else 1, *found.leading[1:], 1, 1)
    return replace(found, mask=Near(places, *window), bias=None if slopes is None else Distance(places, slopes))


def _parts(given: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, (B, T, H, D) or packed (T, H, D), of what may be one tensor or in a cache."""
    if "qkv" in given:
        query, key, value = given["qkv"].unbind(-3)
        return query, key, value
    if "kv" in given:
        return (given["q"], *given["kv"].unbind(-3))
    if "k_cache" not in given:
        return given["q"], _paged(given["k"], given), _paged(given["v"], given)
    return given["q"], _paged(given["k_cache"], given), _paged(given["v_cache"], given)


def _paged(cache: Tensor, given: dict[str, Any]) -> Tensor:
    """Keys or values of each example, which may lie in pages of a pool or in other rows of the cache."""
    if given.get("block_table") is not None:
        return cache[given["block_table"].long()].flatten(1, 2)
    rows = given.get("cache_batch_idx")
    return cache if rows is None else cache[rows.long()]


def _places(given: dict[str, Any], steps: int, keys: int, device: torch.device) -> "Places":
    if "cu_seqlens" in given:
        return packed(given["cu_seqlens"], given["cu_seqlens"], steps, keys)
    if "cu_seqlens_q" in given:
        return packed(given["cu_seqlens_q"], given["cu_seqlens_k"], steps, keys)
    lengths = given.get("cache_seqlens")
    added = 0 if given.get("k") is None or "k_cache" not in given else given["k"].shape[1]
    lengths = torch.as_tensor(keys if lengths is None else lengths, device=device).reshape(-1, 1)
    lengths = lengths + (added if given.get("cache_seqlens") is not None else 0)
    along, first = torch.arange(keys, device=device), given.get("cache_leftpad")
    real = along < lengths
    if first is not None:
        real = real & (along >= first.reshape(-1, 1))
    own = torch.arange(steps, device=device) + lengths - steps
    return Places(own, along[None], torch.zeros_like(own), torch.where(real, 0, -1))


def packed(queries: Int[Tensor, "P"], keys: Int[Tensor, "P"], steps: int, count: int) -> "Places":
    """Places in texts that are packed one behind the other, by where each begins and, last, where all end."""
    sides = []
    for starts, total in ((queries.long(), steps), (keys.long(), count)):
        along = torch.arange(total, device=starts.device)
        text = torch.searchsorted(starts, along, right=True) - 1
        text = text.clamp_max(len(starts) - 2)
        sides.append((along - starts[text], text))
    (own, text_of_queries), (of_keys, text_of_keys) = sides
    more = (keys.diff() - queries.diff())[text_of_queries]
    return Places((own + more)[None], of_keys[None], text_of_queries[None], text_of_keys[None])


def padded(real: Bool[Tensor, "B S"], steps: int) -> "Places":
    """Places in texts of which some tokens are padding; the queries are those of the last `steps` keys."""
    places, text = real.cumsum(-1) - 1, torch.where(real, 0, -1)
    return Places(places[:, -steps:], places, torch.where(real, 0, -2)[:, -steps:], text)


@dataclass(frozen=True, eq=False)
class Places:
    """Where queries and keys stand in their texts, for each example or for all alike; different texts never meet."""

    of_queries: Int[Tensor, "#B T"]
    of_keys: Int[Tensor, "#B S"]
    text_of_queries: Int[Tensor, "#B T"]
    text_of_keys: Int[Tensor, "#B S"]

    def behind(self, rows: range, columns: range, leading: int) -> Int[Tensor, "... T S"]:
        """How many places each key lies behind the query."""
        return _pairs(self.of_queries, self.of_keys, rows, columns, leading, torch.sub)

    def together(self, rows: range, columns: range, leading: int) -> Bool[Tensor, "... T S"]:
        """Whether query and key are of one text."""
        return _pairs(self.text_of_queries, self.text_of_keys, rows, columns, leading, torch.eq)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.of_queries, self.of_keys, self.text_of_queries, self.text_of_keys)


def _pairs(queries: Tensor, keys: Tensor, rows: range, columns: range, leading: int, join: Callable) -> Tensor:
    found = join(queries[:, rows.start : rows.stop, None], keys[:, None, columns.start : columns.stop])
    return found.reshape(len(found), *(1,) * (leading - 1), *found.shape[1:])


@dataclass(frozen=True, eq=False)
class Near(Mask):
    """Only keys of the same text, at most so far behind the query and before it; a negative number is no limit."""

    places: Places
    most_behind: int
    most_before: int

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        allowed, behind = (part(rows, columns, leading) for part in (self.places.together, self.places.behind))
        if self.most_behind >= 0:
            allowed = allowed & (behind <= self.most_behind)
        return allowed & (-behind <= self.most_before) if self.most_before >= 0 else allowed

    def tensors(self) -> tuple[Tensor, ...]:
        return self.places.tensors()


@dataclass(frozen=True, eq=False)
class Distance(Bias):
    """`-slope * |distance|` for each head (ALiBi, Press et al. 2022)."""

    places: Places
    slopes: Float[Tensor, "... 1 1"]

    def block(self, queries: Float[Tensor, "... T D"], rows: range, columns: range) -> Float[Tensor, "... T S"]:
        return -self.slopes * self.places.behind(rows, columns, self.slopes.ndim - 2).abs()

    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.places.tensors(), self.slopes)


def _heads_first(part: Tensor) -> Tensor:
    """(B, H, T, D) of (B, T, H, D), or of packed texts (T, H, D)."""
    return (part if part.ndim == 4 else part[None]).transpose(1, 2)
