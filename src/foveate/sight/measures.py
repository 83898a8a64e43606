"""Where one call looked, in numbers: its weights, and measures that are taken from them block by block.

All work on a `Call` alone and know nothing of the model that made it. Whatever its leading dimensions are, what they
tell is for (B, H) examples and heads, in single precision at least. Memory is linear in T and S, time is that of a few
attention calls.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.call import Call
from foveate.errors import UserError, unknown
from foveate.sight.blocks import Box, Measure, alone, blocks, exact
from foveate.sight.key_measures import Carried, Pooled, Received
from foveate.sight.query_measures import Distance, Entropy, Max, Top, TopKeys

__all__ = [
    "MEASURES",
    "Carried",
    "Distance",
    "Entropy",
    "Max",
    "Measure",
    "Pooled",
    "Received",
    "Top",
    "TopKeys",
    "check_names",
    "measure",
    "places",
    "weights",
]

Choice = slice | int | Sequence[int] | Sequence[bool] | Tensor | np.ndarray

ALL = slice(None)

MEASURES: dict[str, Callable[[int], Measure]] = {
    "top": lambda first: TopKeys(),
    "entropy": lambda first: Entropy(),
    "max": lambda first: Max(),
    "distance": Distance,
    "received": lambda first: Received(),
    "pooled": lambda first: Pooled(),
}
"""What can be measured while a model runs, by name, of a call whose first query stands at the given key."""


def check_names(names: str | Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """The names of some measures, or of `others`. Raises UserError for one that is unknown."""
    names, known = [names] if isinstance(names, str) else list(names), [*MEASURES, *others]
    for name in names:
        if name not in known:
            raise unknown("measure", name, known)
    return names


def measure(call: Call, measures: Iterable[Measure]) -> list[Any]:
    """What each of the measures tells of a call; the weights are computed once for all of them."""
    measures = list(measures)
    with alone(call):
        for each in measures:
            each.start(call)
        for block in blocks(call) if measures else ():
            for each in measures:
                each.add(block)
        return [each.result() for each in measures]


def weights(call: Call, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
    """The weights of the chosen heads, queries and keys, before any dropout; other heads and queries cost nothing.

    A choice is a slice, one place or several in any order, which may count from the end, or a boolean for each place.
    Raises UserError where there is no such.
    """
    leading, (count, total) = call.leading, (call.queries.shape[-2], call.keys.shape[-2])
    everywhere = range(leading[1:].numel())
    heads, queries, keys = places(heads, len(everywhere)), places(queries, count), places(keys, total)
    batch = leading[0] if leading else 1
    with alone(call):
        found = call.queries.new_zeros(batch, len(heads), len(queries), len(keys), dtype=exact(call))
        if heads == everywhere:
            _fill(found.view(*leading, len(queries), len(keys)), call, queries, keys)
        else:
            for part, head in zip(found.unbind(1), heads, strict=True):
                box = _box(leading, head)
                _fill(part.view(*(one.stop - one.start for one in box), *part.shape[1:]), call, queries, keys, box)
    return found


def _fill(found: Tensor, call: Call, queries: Sequence[int], keys: Sequence[int], box: Box | None = None) -> None:
    """Write the weights of some heads, queries and keys to their places."""
    for block in blocks(call, queries, box):
        first, last = block.columns.start, block.columns.stop
        if isinstance(keys, range):
            start = max(keys.start, first)
            stop = max(start, min(keys.stop, last))
            part = block.weights[..., start - first : stop - first]
            block.of_queries(found)[..., start - keys.start : stop - keys.start] = part
        else:
            inside = [place for place, key in enumerate(keys) if first <= key < last]
            block.of_queries(found)[..., inside] = block.weights[..., [keys[place] - first for place in inside]]


def places(choice: Choice, count: int) -> Sequence[int]:
    """The chosen places: a range where they are neighbours, else a list. Raises UserError where there is no such."""
    chosen = range(count)[choice] if isinstance(choice, slice) else list(_listed(choice, count))
    span = range(chosen[0], chosen[0] + len(chosen)) if chosen else range(0)
    # Ranges are compared as such: a list of all places may be more memory than what is asked for.
    return span if chosen == (span if isinstance(chosen, range) else list(span)) else list(chosen)


def _listed(choice: Any, count: int) -> Iterator[int]:
    """Places that are given one by one, as one number, or as one boolean for each."""
    given = choice.tolist() if hasattr(choice, "tolist") else choice
    given = given if isinstance(given, Iterable) else [given]
    listed = [one.item() if hasattr(one, "item") else one for one in given]
    if any(isinstance(one, bool) for one in listed):
        if len(listed) != count or not all(isinstance(one, bool) for one in listed):
            raise UserError(f"booleans choose among {count} places by {count} of them, not by {len(listed)}")
        listed = [place for place, chosen in enumerate(listed) if chosen]
    for place in listed:
        if not -count <= place < count:
            raise UserError(f"there is no place {place} among {count}: they are 0 to {count - 1}")
        yield place % count


def _box(leading: torch.Size, head: int) -> Box:
    """All examples of one head, which may be one of a group."""
    box: list[slice] = []
    for size in reversed(leading[1:]):
        head, place = divmod(head, size)
        box.insert(0, slice(place, place + 1))
    return (slice(0, leading[0]), *box) if leading else ()
