"""What a page shows, and how it comes from a `Sight`: small maps of all heads, and what each query looks at most."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32, Int32

from foveate.errors import UserError, unknown
from foveate.sight.layouts import Windows
from foveate.sight.site_patterns import check_patterns
from foveate.viewer.sides import Pair, Side, sides

CELLS = 64
"""Rows and columns of a small map; a shorter side has a cell for each of its places."""

KEPT, KEPT_LONG, LONG = 8, 4, 2048
"""How many keys each query keeps at least: 8, or 4 where there are more than 2,048 queries or keys."""

BUDGET, FEWEST, MOST = 600_000, 4_096, 16_384
"""About how many weights a page holds, shared evenly by its heads; and the bounds of a head's share."""

WHOLE = 64
"""Of windows of so many places or fewer every weight is kept, beside those of the budget."""

NONE = 2.0**-64
"""A smaller weight is none: it is what a mask leaves that adds -100 to a score."""

LEAST = 2.0**-20
"""Less than this that remains for other keys is no more than how sums are rounded."""


@runtime_checkable
class Map(Protocol):
    """What a page asks of a site; see `foveate.sight.Site`."""

    @property
    def windows(self) -> tuple[Windows, Windows] | None: ...

    @property
    def shape(self) -> tuple[int, int, int, int]: ...

    def weights(self) -> Any: ...

    def measure(self, *names: str, top: int) -> None: ...

    def top(self, k: int) -> Any: ...

    def entropy(self) -> Any: ...

    def pooled(self, rows: int, columns: int) -> Any: ...


@runtime_checkable
class Maps(Protocol):
    """What a page asks of a sight."""

    @property
    def sites(self) -> list[str]: ...

    def __getitem__(self, name: str) -> Any: ...


@dataclass
class Rows:
    """The keys that each query looks at most, in the order of their places, and the weight that all others have."""

    keys: Int32[np.ndarray, "H T k"]
    """-1, with a weight of 0, where a query has fewer keys to look at."""
    weights: Float32[np.ndarray, "H T k"]
    rest: Float32[np.ndarray, "H T"]


@dataclass
class Panel:
    """The map of one site: its heads side by side."""

    name: str
    queries: Side
    keys: Side
    rows: Rows
    maps: Float32[np.ndarray, "H R C"]
    """Small maps, as `Site.pooled` gives them: the weight on all keys of a cell, as the mean of its queries."""
    entropy: Float32[np.ndarray, "H"]
    """The mean over the queries, in nats."""
    windows: tuple[Windows, Windows] | None = None
    """Of a picture, where queries and keys stand in windows that they do not look out of."""

    @property
    def heads(self) -> int:
        return len(self.maps)

    @property
    def exact(self) -> bool:
        """Whether it has every weight."""
        return self.rows.keys.shape[2] == self.keys.count

    @property
    def group(self) -> str:
        """The name with a star for each number in its path: sites with the same are the layers of one stack."""
        return re.sub(r"(?<![^.])\d+(?![^.#])", "*", self.name)

    @property
    def layer(self) -> str:
        """The numbers in its path."""
        return ".".join(re.findall(r"(?<![^.])\d+(?![^.#])", self.name))


@dataclass
class Document:
    """All that one page shows."""

    title: str
    sites: list[Panel]
    notes: list[str] = field(default_factory=list)
    """Lines below the title."""


def document(
    sight: Maps,
    tokens: Pair | Mapping[str, Pair] = None,
    example: int = 0,
    title: str = "Where the model looks",
    notes: Sequence[str] = (),
    sites: Sequence[str] | None = None,
) -> Document:
    """What to show of one example of a sight, at all its sites or at those named.

    `tokens` says what the queries and the keys are: a list of texts, an `Image` or an `Audio` where both sides are the
    same, a tuple (queries, keys) where they differ, and a mapping from patterns of site names to these where sites
    differ: `{"encoder*": source, "decoder*self": target, "*cross": (target, source)}`. Without them places are numbers.

    Computes measures in streams, and all weights only of maps that are small. Raises UserError where tokens and a map
    differ in number, and for weights that are no numbers.
    """
    for name in sites or ():
        if name not in sight.sites:
            raise unknown("site", name, sight.sites)
    chosen = list(sight.sites if sites is None else sites)
    if not chosen:
        raise UserError("there is no site to show: nothing attended while it was looked at")
    if isinstance(tokens, Mapping):
        check_patterns(tokens, chosen, "tokens")
    share = _share(sum(sight[name].shape[1] for name in chosen))
    return Document(title, [_panel(sight[name], name, tokens, example, share) for name in chosen], list(notes))


def kept(queries: int, keys: int, share: int, windows: tuple[Windows, Windows] | None = None) -> int:
    """How many keys each query keeps where a head has a share of so many weights; all of them where they almost fit."""
    if 4 * queries * keys <= 5 * share:
        return keys
    least = KEPT if max(queries, keys) <= LONG else KEPT_LONG
    return min(keys, whole(windows) or max(least, share // queries))


def whole(windows: tuple[Windows, Windows] | None) -> int:
    """How many keys a query may look at in a window that is small enough to be kept whole; 0 where there is none."""
    return windows[1].size if windows and windows[1].size <= WHOLE else 0


def cells(count: int, parts: int) -> np.ndarray:
    """Where each of the parts that a side is cut into begins, and the end: the n-th of r at floor(n * count / r)."""
    return np.arange(parts + 1) * count // parts


def pooled(weights: Float32[np.ndarray, "H T S"]) -> Float32[np.ndarray, "H R C"]:
    """The small maps of heads of which every weight is known."""
    _, queries, keys = weights.shape
    over, along = cells(queries, min(queries, CELLS)), cells(keys, min(keys, CELLS))
    found = np.add.reduceat(np.add.reduceat(weights, along[:-1], 2), over[:-1], 1)
    return found / np.diff(over)[:, None].astype(np.float32)


def check_numbers(name: str, *values: np.ndarray) -> None:
    """Raises UserError for weights of a site that are no numbers: drawn, they would look like none."""
    if not all(np.isfinite(each).all() for each in values):
        raise UserError(f"{name}: its weights are not all numbers (NaN), as after an overflow; there is no map to show")


def _share(heads: int) -> int:
    return min(MOST, max(FEWEST, BUDGET // heads))


def _panel(site: Map, name: str, tokens: Pair | Mapping[str, Pair], example: int, share: int) -> Panel:
    batch, _, queries, keys = site.shape
    if not -batch <= example < batch:
        raise UserError(f"{name}: there is no example {example}; it has {batch}, counted from 0")
    if not queries or not keys:
        raise UserError(f"{name}: a map of {queries} queries and {keys} keys has nothing to show")
    sides_of = sides(tokens, name, queries, keys, site.windows)
    count = kept(queries, keys, share, site.windows)
    if count == keys:
        rows, maps, entropy = _all(site, example)
    else:
        rows, maps, entropy = _most(site, example, count)
    check_numbers(name, maps, rows.weights)
    return Panel(name, *sides_of, rows, maps, entropy, site.windows)


def _all(site: Map, example: int) -> tuple[Rows, np.ndarray, np.ndarray]:
    weights = _none(_numbers(site.weights(), example))
    keys = np.broadcast_to(np.arange(weights.shape[2], dtype=np.int32), weights.shape)
    rows = Rows(keys, weights, np.zeros(weights.shape[:2], np.float32))
    return rows, pooled(weights), _numbers(site.entropy(), example).mean(1)


def _most(site: Map, example: int, count: int) -> tuple[Rows, np.ndarray, np.ndarray]:
    site.measure("top", "pooled", "entropy", top=count)
    found = site.top(count)
    weights, keys = _none(_numbers(found.weights, example)), found.keys[example].cpu().numpy().astype(np.int32)
    keys = np.where(weights > 0, keys, -1)
    order = np.argsort(np.where(keys < 0, np.iinfo(np.int32).max, keys), axis=2, kind="stable")
    weights, keys = np.take_along_axis(weights, order, 2), np.take_along_axis(keys, order, 2)
    maps = _numbers(site.pooled(CELLS, CELLS), example)
    total = np.ones(weights.shape[:2], np.float32)
    if (maps.sum(2) < 1 - 1e-3).any():  # rows that look nowhere, or give part of their weight to no key
        total = _numbers(site.pooled(weights.shape[1], 1), example)[..., 0]
    rest = total - weights.sum(2)
    rest[(rest < LEAST) | (keys < 0).any(2)] = 0
    return Rows(keys, weights, rest), maps, _numbers(site.entropy(), example).mean(1)


def _numbers(values: Any, example: int) -> np.ndarray:
    return values[example].detach().cpu().float().numpy()


def _none(weights: np.ndarray) -> np.ndarray:
    return np.where(weights < NONE, 0, weights)
