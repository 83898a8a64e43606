"""The answer to a request for a look: a page, or the weights as JSON values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foveate.errors import UserError, show_value
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Side, make_sides

DIGITS = 6
"""Decimal places of weights."""


@dataclass(frozen=True)
class Wish:
    """What is asked of a look."""

    sites: tuple[str, ...] | None = None
    """Patterns of the names of sites; None for all."""
    heads: tuple[int, ...] | None = None
    """Heads with a map of their own; None for the mean over heads."""

    @classmethod
    def of(cls, sites: Any, heads: Any) -> "Wish":
        """The wish of a request. Raises UserError for values of other types."""
        if sites is not None and not (isinstance(sites, list) and sites and all(isinstance(one, str) for one in sites)):
            raise UserError(f"sites is {show_value(sites)}, but must be a list of names or patterns")
        if heads is not None and not (isinstance(heads, list) and heads and all(type(one) is int for one in heads)):
            raise UserError(f"heads is {show_value(heads)}, but must be a list of numbers")
        return cls(None if sites is None else tuple(sites), None if heads is None else tuple(heads))


def weights_of(looked: LookResult, wish: Wish, most: int) -> dict[str, Any]:
    """The weights of a look as JSON values. Raises UserError for more than `most` of them, and for heads that there are
    not."""
    maps = 1 if wish.heads is None else len(wish.heads)
    count = sum(maps * site.shape[2] * site.shape[3] for site in looked.sight)
    if count > most:
        raise UserError(f"these maps have {count:,} weights, but the limit is {most:,}: name fewer sites or heads")
    return {"title": looked.title, "notes": looked.notes, "sites": [_site(looked, site, wish) for site in looked.sight]}


def _site(looked: LookResult, site: Any, wish: Wish) -> dict[str, Any]:
    _, heads, queries, keys = site.shape
    over, along = make_sides(looked.tokens, site.name, queries, keys)
    found = {"name": site.name, "heads": heads, "queries": _names(over), "keys": _names(along)}
    if wish.heads is None:
        return {**found, "mean": _numbers(site.weights()[0].mean(0))}
    if not all(0 <= head < heads for head in wish.heads):
        raise UserError(f"{site.name} has the heads 0 to {heads - 1}, not {', '.join(map(str, wish.heads))}")
    return {**found, "weights": dict(zip(wish.heads, map(_numbers, site.weights([*wish.heads])[0]), strict=True))}


def _numbers(weights: Any) -> list[Any]:
    found: list[Any] = weights.double().cpu().numpy().round(DIGITS).tolist()
    return found


def _names(side: Side) -> Sequence[str]:
    """The names of positions; numbers of those without one."""
    return [*side.labels, *map(str, range(len(side.labels), side.count))]
