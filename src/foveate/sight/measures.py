"""The weights of one call, and measures that are computed from them block by block.

Everything here works on a `Call` and knows nothing of the model that made it. Results have the leading dimensions
(B, H), whatever those of the call are, in single precision or higher. Memory is linear in T and S; the time is that of
a few attention calls.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.call import Call
from foveate.errors import UserError, show_value, unknown
from foveate.sight.blocks import Box, Measure, compute_dtype, measurement_context, weight_blocks
from foveate.sight.key_measures import Pooled, Propagation, Received
from foveate.sight.query_measures import Distance, Entropy, LargestScore, Max, Top, TopKeys
from foveate.sight.site_patterns import list_of_texts

__all__ = [
    "MEASURES",
    "Distance",
    "Entropy",
    "LargestScore",
    "Max",
    "Measure",
    "Pooled",
    "Propagation",
    "Received",
    "Top",
    "TopKeys",
    "check_names",
    "measure",
    "resolve_choice",
    "weights",
]

Choice = slice | int | Sequence[int] | Sequence[bool] | Tensor | np.ndarray

ALL = slice(None)

MEASURES: dict[str, Callable[[int], Measure]] = {
    "top": lambda first: TopKeys(),
    "entropy": lambda first: Entropy(),
    "max": lambda first: Max(),
    "score": lambda first: LargestScore(),
    "distance": Distance,
    "received": lambda first: Received(),
    "pooled": lambda first: Pooled(),
}
"""Measures that can be computed while a model runs, by name, for a call whose first query has the given position."""


def check_names(names: str | Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """The names as a list. Raises UserError for a name that is neither in `MEASURES` nor in `others`."""
    names, known = list_of_texts("measures", names), [*MEASURES, *others]
    for name in names:
        if name not in known:
            raise unknown("measure", name, known)
    return names


def measure(call: Call, measures: Iterable[Measure]) -> list[Any]:
    """The result of each measure for a call; the weights are computed once for all of them."""
    measures = list(measures)
    with measurement_context(call):
        for each in measures:
            each.start(call)
        for block in weight_blocks(call) if measures else ():
            for each in measures:
                each.add(block)
        return [each.result() for each in measures]


def weights(call: Call, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
    """The weights of the chosen heads, queries and keys, before any dropout; other heads and queries cost nothing.

    A choice is a slice, one or several positions in any order (negative ones count from the end), or one boolean for
    each position. Raises UserError for a position that does not exist.
    """
    leading, (count, total) = call.leading, (call.queries.shape[-2], call.keys.shape[-2])
    all_heads = range(leading[1:].numel())
    heads, queries = resolve_choice(heads, len(all_heads)), resolve_choice(queries, count)
    keys = resolve_choice(keys, total)
    batch = leading[0] if leading else 1
    with measurement_context(call):
        result = call.queries.new_zeros(batch, len(heads), len(queries), len(keys), dtype=compute_dtype(call))
        if heads == all_heads:
            _fill(result.view(*leading, len(queries), len(keys)), call, queries, keys)
        else:
            for part, head in zip(result.unbind(1), heads, strict=True):
                box = _head_box(leading, head)
                _fill(part.view(*(one.stop - one.start for one in box), *part.shape[1:]), call, queries, keys, box)
    return result


def _fill(result: Tensor, call: Call, queries: Sequence[int], keys: Sequence[int], box: Box | None = None) -> None:
    """Write the weights of some heads, queries and keys into `result`."""
    for block in weight_blocks(call, queries, box):
        first, last = block.columns.start, block.columns.stop
        if isinstance(keys, range):
            start = max(keys.start, first)
            stop = max(start, min(keys.stop, last))
            part = block.weights[..., start - first : stop - first]
            block.query_view(result)[..., start - keys.start : stop - keys.start] = part
        else:
            inside = [at for at, key in enumerate(keys) if first <= key < last]
            block.query_view(result)[..., inside] = block.weights[..., [keys[at] - first for at in inside]]


def resolve_choice(choice: Choice, count: int, what: str = "position") -> Sequence[int]:
    """The chosen positions among `count`: a range if they are contiguous, else a list. Raises UserError if one is
    missing, which calls it `what`."""
    try:
        chosen = range(count)[choice] if isinstance(choice, slice) else list(_positions(choice, count, what))
    except TypeError:
        given = show_value(choice)
        raise UserError(f"positions are chosen by numbers, a slice or {count} booleans, not by {given}") from None
    span = range(chosen[0], chosen[0] + len(chosen)) if chosen else range(0)
    # Ranges are compared without making a list, which may need more memory than the result.
    return span if chosen == (span if isinstance(chosen, range) else list(span)) else list(chosen)


def _positions(choice: Any, count: int, what: str) -> Iterator[int]:
    """Positions that are given as one number, several numbers, or one boolean for each position."""
    given = choice.tolist() if hasattr(choice, "tolist") else choice
    given = given if isinstance(given, Iterable) else [given]
    listed = [one.item() if hasattr(one, "item") else one for one in given]
    if any(isinstance(one, bool) for one in listed):
        if len(listed) != count or not all(isinstance(one, bool) for one in listed):
            raise UserError(f"booleans choose among {count} positions by {count} of them, not by {len(listed)}")
        listed = [position for position, chosen in enumerate(listed) if chosen]
    for position in listed:
        if not -count <= position < count:
            raise UserError(f"there is no {what} {position} among {count}: they are 0 to {count - 1}")
        yield operator.index(position) % count


def _head_box(leading: torch.Size, head: int) -> Box:
    """All examples of one head, which may be one of a group."""
    box: list[slice] = []
    for size in reversed(leading[1:]):
        head, within = divmod(head, size)
        box.insert(0, slice(within, within + 1))
    return (slice(0, leading[0]), *box) if leading else ()
