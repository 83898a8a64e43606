"""Small maps and single rows of some heads, from a bounded number of weights, for inputs of any length.

If a map has more weights, it is the mean over a sample of queries, evenly spaced within each cell.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int, Int32

from foveate.errors import UserError
from foveate.sight.derived import DerivedSite
from foveate.sight.site import Site
from foveate.viewer.document import CELLS, NEGLIGIBLE, cells
from foveate.viewer.point_panel import point_panel
from foveate.viewer.rollout import RolloutSite

MAX_WEIGHTS = 2**27
"""Maximum number of weights for one answer, unless a single query for each cell or row needs more."""

AT_ONCE = 2**22
"""Number of weights in memory at once."""

MAX_SIDE = 512
"""Maximum number of rows and columns of a map."""

EXAMPLE = 0
"""The example that is shown: an input is a batch of one."""


def sample_queries(count: int, parts: int, most: int) -> list[Int[np.ndarray, "_"]]:
    """The sampled queries of each of the parts of `count` queries: evenly spaced, at most `most` in all, or one each.

    As in a page, part n begins at floor(n * count / parts).
    """
    each, found = max(1, most // parts), []
    for start, end in pairwise(cells(count, parts).tolist()):
        size = min(each, end - start)
        found.append(start + (2 * np.arange(size) + 1) * (end - start) // (2 * size))
    return found


def sampling_step(site: Site | RolloutSite) -> int:
    """Average spacing of the sampled queries in the small maps of a site; 1 only if the maps are exact."""
    queries, used = site.shape[2], sum(map(len, _overview(site)))
    return 1 if site.windows or used == queries else max(2, round(queries / used))


def compute_points(site: Any, head: int, rows: tuple[int, int]) -> Iterator[Float32[np.ndarray, "t N"]]:
    """The points of some queries: from the left, from the top, as shares of the image; and weights."""
    _check_span(rows, site.shape[2], "queries")
    found = point_panel(site, EXAMPLE, [head], range(*rows))
    yield from (found.places[0, ..., 0], found.places[0, ..., 1], found.weights[0])


def compute_overview(site: Site | RolloutSite) -> tuple[Float32[np.ndarray, "H"], Float32[np.ndarray, "H R C"]]:
    """The overview of a site: the mean entropy of each head, in nats, and its map of at most 64 x 64 cells."""
    _, heads, queries, keys = site.shape
    if site.windows:  # windows have few weights, for any number of patches
        found = site.entropy()[EXAMPLE].mean(-1), site.pooled(CELLS, CELLS)[EXAMPLE]
        return tuple(each.cpu().float().numpy() for each in found)  # type: ignore[return-value]
    parts = _overview(site)
    sizes = np.diff(cells(queries, len(parts)))
    along = cells(keys, min(CELLS, keys))
    maps = np.zeros((heads, len(parts), len(along) - 1), np.float32)
    entropy = np.zeros(heads)
    for place, weights in _part_weights(site, slice(None), parts, (0, keys)):
        maps[:, place] = np.add.reduceat(weights.mean(1), along[:-1], 1)
        shares = _shares(site, weights)
        logarithm = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        entropy -= (shares * logarithm).sum(2).mean(1) * sizes[place]
    return (entropy / queries).astype(np.float32), maps


def _shares(site: Site | RolloutSite, weights: np.ndarray) -> np.ndarray:
    """The numbers of rows as shares that sum to 1, whose entropy is that of the site: those of a part of a map, or of
    weights times something, are divided by their sum; a sink counts as one more key."""
    if site.has_sinks and not isinstance(site, DerivedSite):
        return np.append(weights, 1 - weights.sum(2, keepdims=True).clip(max=1), 2)
    sizes = np.abs(weights)
    return sizes / sizes.sum(2, keepdims=True).clip(min=np.finfo(sizes.dtype).tiny)


def _overview(site: Site | RolloutSite) -> list[Int[np.ndarray, "_"]]:
    _, heads, queries, keys = site.shape
    return sample_queries(queries, min(CELLS, queries), MAX_WEIGHTS // (heads * keys))


def compute_tile(
    site: Site | RolloutSite, head: int, rows: tuple[int, int], columns: tuple[int, int], size: tuple[int, int]
) -> Float32[np.ndarray, "R C"]:
    """A map of a part of one head, with at most `size` rows and columns; a cell may have several positions.

    A cell is the weight on all of its keys, averaged over its queries. Raises UserError for an invalid part.
    """
    _, _, queries, keys = site.shape
    for span, count in ((rows, queries), (columns, keys)):
        _check_span(span, count)
    if not all(0 < each <= MAX_SIDE for each in size):
        raise UserError(f"a map has 1 to {MAX_SIDE} rows and columns, not {size[0]} and {size[1]}")
    height, width = min(size[0], rows[1] - rows[0]), min(size[1], columns[1] - columns[0])
    parts = [part + rows[0] for part in sample_queries(rows[1] - rows[0], height, MAX_WEIGHTS // keys)]
    along = cells(columns[1] - columns[0], width)
    found = np.zeros((height, width), np.float32)
    for place, weights in _part_weights(site, [head], parts, columns):
        found[place] = np.add.reduceat(weights[0].mean(0), along[:-1])
    return found


def compute_rows(
    site: Site | RolloutSite, head: int, rows: tuple[int, int], kept: int
) -> tuple[Int32[np.ndarray, "T k"], Float32[np.ndarray, "T k"], Float32[np.ndarray, "T"]]:
    """The keys with the largest weights of some queries of a head, in order (-1 for none), their weights, and the rest.

    Raises UserError for queries that do not exist, and for too many weights.
    """
    _, _, queries, keys = site.shape
    start, end = rows
    _check_span(rows, queries, "queries")
    if end - start > max(1, MAX_WEIGHTS // keys):
        raise UserError(
            f"{end - start} queries of {keys} keys are too many at once; ask for {max(1, MAX_WEIGHTS // keys)}"
        )
    places, values, rest = [], [], []
    height = max(1, AT_ONCE // keys)
    parts = [np.arange(first, min(end, first + height)) for first in range(start, end, height)]
    for _, part in _part_weights(site, [head], parts, (0, keys)):
        weights = torch.from_numpy(part[0])
        found, at = weights.topk(kept, -1)
        order = at.masked_fill(found == 0, keys).argsort(stable=True)
        found, at = found.gather(-1, order), at.gather(-1, order)
        places.append(at.masked_fill(found == 0, -1).numpy().astype(np.int32))
        values.append(found.numpy())
        rest.append((weights.double().sum(-1) - found.double().sum(-1)).clamp_(min=0).float().numpy())
    return np.concatenate(places), np.concatenate(values), np.concatenate(rest)


def _check_span(span: tuple[int, int], count: int, what: str = "positions") -> None:
    """Raise UserError for a part of a side that does not exist."""
    start, end = span
    if not 0 <= start < end <= count:
        raise UserError(f"there are no {what} {start} to {end} among {count}")


def _part_weights(
    site: Site | RolloutSite, heads: slice | list[int], parts: list[Int[np.ndarray, "_"]], columns: tuple[int, int]
) -> Iterator[tuple[int, Float32[np.ndarray, "H _ K"]]]:
    """The weights of the queries of each part over some keys. Several small parts are computed at once."""
    width = site.shape[3] * (site.shape[1] if isinstance(heads, slice) else len(heads))
    start = 0
    while start < len(parts):
        end, count = start + 1, len(parts[start])
        while end < len(parts) and (count + len(parts[end])) * width <= AT_ONCE:
            count += len(parts[end])
            end += 1
        queries = np.concatenate(parts[start:end])
        found = site.weights(heads, queries.tolist(), slice(*columns))[EXAMPLE].cpu().float().numpy()
        found[found < NEGLIGIBLE] = 0
        bounds = np.cumsum([0, *map(len, parts[start:end])])
        for place in range(start, end):
            yield place, found[:, bounds[place - start] : bounds[place - start + 1]]
        start = end
