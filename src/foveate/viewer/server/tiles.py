"""Small maps and single rows of one head or of all, from a bounded number of weights however long the input is.

Where a map has more weights than that, it is the mean of some queries only, which lie evenly in each of its cells.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float32, Int, Int32

from foveate.errors import UserError
from foveate.sight.site import Site
from foveate.viewer.document import CELLS, NONE, cells

MOST = 2**27
"""How many weights are computed for one answer at most, unless a single query for each cell or row needs more."""

AT_ONCE = 2**22
"""How many of them are held at once."""

SIDE = 512
"""How many rows and columns a map has at most."""

EXAMPLE = 0
"""Which example of a batch is shown: an input is looked at alone."""


def sampled(count: int, parts: int, most: int) -> list[Int[np.ndarray, "_"]]:
    """The queries that stand for each part of `count`: all of a part, or some evenly apart, `most` in all or one each.

    Parts are cut as those of a page: the n-th begins at floor(n * count / parts).
    """
    each, found = max(1, most // parts), []
    for start, end in pairwise(cells(count, parts).tolist()):
        size = min(each, end - start)
        found.append(start + (2 * np.arange(size) + 1) * (end - start) // (2 * size))
    return found


def step(site: Site) -> int:
    """Of about how many queries one is taken for the small maps of a site; 1 only where they are exact."""
    queries, used = site.shape[2], sum(map(len, _overview(site)))
    return 1 if site.windows or used == queries else max(2, round(queries / used))


def small_maps(site: Site) -> tuple[Float32[np.ndarray, "H"], Float32[np.ndarray, "H R C"]]:
    """The overview of a site: the mean entropy of each head, in nats, and its map of at most 64 x 64 cells."""
    _, heads, queries, keys = site.shape
    if site.windows:  # few weights, however many patches there are
        found = site.entropy()[EXAMPLE].mean(-1), site.pooled(CELLS, CELLS)[EXAMPLE]
        return tuple(each.cpu().float().numpy() for each in found)  # type: ignore[return-value]
    parts = _overview(site)
    sizes = np.diff(cells(queries, len(parts)))
    along = cells(keys, min(CELLS, keys))
    maps = np.zeros((heads, len(parts), len(along) - 1), np.float32)
    entropy = np.zeros(heads)
    for place, weights in _weights(site, slice(None), parts, (0, keys)):
        maps[:, place] = np.add.reduceat(weights.mean(1), along[:-1], 1)
        if site.has_sinks:  # a sink is one more place
            weights = np.append(weights, 1 - weights.sum(2, keepdims=True).clip(max=1), 2)
        logarithm = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
        entropy -= (weights * logarithm).sum(2).mean(1) * sizes[place]
    return (entropy / queries).astype(np.float32), maps


def _overview(site: Site) -> list[Int[np.ndarray, "_"]]:
    _, heads, queries, keys = site.shape
    return sampled(queries, min(CELLS, queries), MOST // (heads * keys))


def tile(
    site: Site, head: int, rows: tuple[int, int], columns: tuple[int, int], size: tuple[int, int]
) -> Float32[np.ndarray, "R C"]:
    """A map of a part of one head, of at most `size` rows and columns: a cell for each place, or for several.

    A cell is the weight on all of its keys, as the mean of its queries. Raises UserError for a part that is none.
    """
    _, _, queries, keys = site.shape
    for (start, end), count in ((rows, queries), (columns, keys)):
        if not 0 <= start < end <= count:
            raise UserError(f"there are no places {start} to {end} among {count}")
    if not all(0 < each <= SIDE for each in size):
        raise UserError(f"a map has 1 to {SIDE} rows and columns, not {size[0]} and {size[1]}")
    height, width = min(size[0], rows[1] - rows[0]), min(size[1], columns[1] - columns[0])
    parts = [part + rows[0] for part in sampled(rows[1] - rows[0], height, MOST // keys)]
    along = cells(columns[1] - columns[0], width)
    found = np.zeros((height, width), np.float32)
    for place, weights in _weights(site, [head], parts, columns):
        found[place] = np.add.reduceat(weights[0].mean(0), along[:-1])
    return found


def top(
    site: Site, head: int, rows: tuple[int, int], kept: int
) -> tuple[Int32[np.ndarray, "T k"], Float32[np.ndarray, "T k"], Float32[np.ndarray, "T"]]:
    """What some queries of a head look at most: keys in their order (-1 for none), weights, and the weight of the rest.

    Raises UserError for queries that there are not, or that have more weights than are computed at once.
    """
    _, _, queries, keys = site.shape
    start, end = rows
    if not 0 <= start < end <= queries:
        raise UserError(f"there are no queries {start} to {end} among {queries}")
    if end - start > max(1, MOST // keys):
        raise UserError(f"{end - start} queries of {keys} keys are too many at once; ask for {max(1, MOST // keys)}")
    places, values, rest = [], [], []
    height = max(1, AT_ONCE // keys)
    parts = [np.arange(first, min(end, first + height)) for first in range(start, end, height)]
    for _, part in _weights(site, [head], parts, (0, keys)):
        weights = torch.from_numpy(part[0])
        found, at = weights.topk(kept, -1)
        order = at.masked_fill(found == 0, keys).argsort(stable=True)
        found, at = found.gather(-1, order), at.gather(-1, order)
        places.append(at.masked_fill(found == 0, -1).numpy().astype(np.int32))
        values.append(found.numpy())
        rest.append((weights.double().sum(-1) - found.double().sum(-1)).clamp_(min=0).float().numpy())
    return np.concatenate(places), np.concatenate(values), np.concatenate(rest)


def _weights(
    site: Site, heads: slice | list[int], parts: list[Int[np.ndarray, "_"]], columns: tuple[int, int]
) -> Iterator[tuple[int, Float32[np.ndarray, "H _ K"]]]:
    """The weights of the queries of each part on some keys. Several small parts are computed at once."""
    width = site.shape[3] * (site.shape[1] if isinstance(heads, slice) else len(heads))
    start = 0
    while start < len(parts):
        end, count = start + 1, len(parts[start])
        while end < len(parts) and (count + len(parts[end])) * width <= AT_ONCE:
            count += len(parts[end])
            end += 1
        queries = np.concatenate(parts[start:end])
        found = site.weights(heads, queries.tolist(), slice(*columns))[EXAMPLE].cpu().float().numpy()
        found[found < NONE] = 0
        bounds = np.cumsum([0, *map(len, parts[start:end])])
        for place in range(start, end):
            yield place, found[:, bounds[place - start] : bounds[place - start + 1]]
        start = end
