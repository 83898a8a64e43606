"""What a page shows of a `Sight`: small maps of all heads, and the largest weights of each query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32, Int32

from foveate.errors import UserError, unknown
from foveate.sight.layouts import Windows
from foveate.sight.measured_look import DIFFERENCE, OF_WEIGHTS
from foveate.sight.sight import Sight
from foveate.sight.site_patterns import check_patterns, list_of_texts
from foveate.viewer.point_panel import PointPanel, kept_points, looks_at_points, point_panel
from foveate.viewer.rollout import RolloutSite, rollouts
from foveate.viewer.sides import Image, Side, SidePair, check_example, make_sides
from foveate.viewer.stacks import group_of, layer_of

CELLS = 64
"""Rows and columns of a small map; a shorter side has one cell for each position."""

TOP_KEYS, TOP_KEYS_LONG, LONG = 8, 4, 2048
"""Minimum number of keys kept for each query: 8, or 4 if there are more than 2,048 queries or keys."""

PAGE_WEIGHTS, MIN_HEAD_WEIGHTS, MAX_HEAD_WEIGHTS = 600_000, 4_096, 16_384
"""Approximate number of weights in a page, shared evenly by its heads, and the bounds of a head's share."""

WHOLE_WINDOW = 64
"""All weights are kept of windows with at most this many positions, in addition to the budget."""

NEGLIGIBLE = 2.0**-64
"""Smaller weights count as 0: a mask that adds -100 to a score leaves such weights."""

ROUNDING = 2.0**-20
"""A remaining weight below this is a rounding error."""


@runtime_checkable
class SiteLike(Protocol):
    """The part of a `foveate.sight.Site` that a page needs."""

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
class SightLike(Protocol):
    """The part of a `foveate.sight.Sight` that a page needs."""

    @property
    def sites(self) -> list[str]: ...

    def __getitem__(self, name: str) -> Any: ...


@dataclass
class TopWeights:
    """The keys with the largest weights of each query, in the order of their positions, and the rest of the weight."""

    keys: Int32[np.ndarray, "H T k"]
    """-1, with the weight 0, if a query has fewer keys."""
    weights: Float32[np.ndarray, "H T k"]
    rest: Float32[np.ndarray, "H T"]
    """The total weight of all other keys."""


@dataclass
class Panel:
    """The map of one site: its heads side by side."""

    name: str
    queries: Side
    keys: Side
    rows: TopWeights
    maps: Float32[np.ndarray, "H R C"]
    """Small maps from `Site.pooled`: the weight on all keys of a cell, averaged over its queries."""
    entropy: Float32[np.ndarray, "H"]
    """The mean over the queries, in nats."""
    windows: tuple[Windows, Windows] | None = None
    """The windows of queries and keys in a picture, if attention is limited to windows."""
    rollout: bool = False
    """Whether it is not a site of the model, but the rollout through a stack of its layers."""
    shows: str = "weights"
    """What the map shows: one of `foveate.sight.measured_look.MEASURES`."""
    unit: float = 1.0
    """The largest number of all maps that show the same; 1 for weights, whose rows sum to at most 1."""
    points: PointPanel | None = None
    """The points of feature maps that its queries look at, if they do."""

    @property
    def heads(self) -> int:
        return len(self.maps)

    @property
    def exact(self) -> bool:
        """Whether it contains every weight."""
        return self.rows.keys.shape[2] == self.keys.count

    @property
    def group(self) -> str:
        """The name with a star for each number in its path, see `stacks.group_of`."""
        return group_of(self.name)

    @property
    def layer(self) -> str:
        """The numbers in its path; none of a rollout."""
        return "" if self.rollout else layer_of(self.name)


@dataclass(frozen=True)
class Effect:
    """How much the score grows without a head, a layer or a place: below 0 where the answer needs it."""

    change: float
    exact: bool
    """Whether it was measured; else it is a first-order estimate."""


@dataclass(frozen=True)
class PlaceEffects:
    """The effects of places of an input that are shown together: the words of a text, or the cells of an image."""

    site: str
    """A site of the page whose keys they are, perhaps among others."""
    places: Sequence[int]
    """Which of its keys."""
    effects: Sequence[Effect]
    """One for each of these places."""


@dataclass(frozen=True)
class EffectPanel:
    """The effects of a page."""

    answer: str
    """What is scored."""
    score_name: str
    value: float
    """The score of the whole model."""
    heads: dict[str, list[Effect]]
    """By site."""
    layers: dict[str, Effect]
    """By site: of all its heads together."""
    places: list[PlaceEffects] = field(default_factory=list)
    """Of the input, a part for each text and each image; none where the model has no such keys."""


@dataclass(frozen=True)
class Opening:
    """What a page opens with, in place of the overview: the mean of a site's heads, with a query chosen."""

    site: str
    query: int = 0


@dataclass
class Document:
    """The content of one page."""

    title: str
    sites: list[Panel]
    notes: list[str] = field(default_factory=list)
    """Lines below the title."""
    effects: EffectPanel | None = None
    """What the model's answer needs of what it attends to, where that was measured."""
    opening: Opening | None = None
    """None for a page that opens with the overview."""


def make_document(
    sight: SightLike,
    tokens: SidePair | Mapping[str, SidePair] = None,
    example: int = 0,
    title: str = "Where the model looks",
    notes: Sequence[str] = (),
    sites: Sequence[str] | None = None,
) -> Document:
    """The page of one example of a sight, with all sites or those in `sites`.

    `tokens` names queries and keys: a list of texts, an `Image` or an `Audio` if both sides are the same, a tuple
    (queries, keys) if they differ, or a mapping from patterns of site names to these:
    `{"encoder*": source, "decoder*self": target, "*cross": (target, source)}`. Without them positions are numbered.

    Attention to points of feature maps is summed to a map over the image (see `Sight.sum_points`); the page has the
    points too, of as many sites as fit. After the sites stands the rollout of each stack of layers that is whole among
    them (see `rollout.rollouts`), where their maps show weights.

    All weights are computed for small maps only; otherwise measures are streamed. Raises UserError if a map has another
    number of queries or keys than there are tokens, and for weights that are NaN.
    """
    sight = sight.sum_points() if isinstance(sight, Sight) else sight
    sites = None if sites is None else list_of_texts("sites", sites)
    for name in sites or ():
        if name not in sight.sites:
            raise unknown("site", name, sight.sites)
    chosen = list(sight.sites if sites is None else sites)
    if not chosen:
        raise UserError("there is no site to show: nothing attended during the look")
    if isinstance(tokens, Mapping):
        check_patterns(tokens, chosen, "tokens")
    share = _weights_per_head(sum(sight[name].shape[1] for name in chosen))
    panels = [_make_panel(sight[name], name, tokens, example, share) for name in chosen]
    set_units(panels)
    notes = [*notes, *_add_points(panels, sight, example)]
    for site in rollouts(sight).values():
        if set(site.layers) <= set(chosen):
            panels.append(_make_panel(site, site.name, tokens, example, share))
    return Document(title, panels, list(notes))


def set_units(panels: Sequence[Panel]) -> None:
    """Set the unit of the panels of each measure."""
    for measure in {panel.shows for panel in panels}:
        own = [panel for panel in panels if panel.shows == measure]
        largest = max(float(abs(panel.rows.weights).max(initial=0)) for panel in own)
        for panel in own:
            panel.unit = 1.0 if measure in OF_WEIGHTS else largest or 1.0


def _add_points(panels: Sequence[Panel], sight: SightLike, example: int) -> list[str]:
    """Add the points of as many sites as fit into a page. Returns a line about the others, if there are any."""
    whole = {panel.name: sight[panel.name] for panel in panels if looks_at_points(sight[panel.name])}
    kept = kept_points({name: site.count_points() for name, site in whole.items()})
    for panel in panels:
        if panel.name in kept:
            panel.points = point_panel(whole[panel.name], example)
    left = [name for name in whole if name not in kept]
    return [f"The points of {', '.join(left)} are too many for a page: their maps are shown."] if left else []


def opening_on_picture(panels: Sequence[Panel]) -> Opening | None:
    """What the page of an image opens with: where the first word, or the first thing, of the last layer that reads the
    image looks; without words, where the first place looks. None for other pages."""
    name = site_over_image({panel.name: (panel.queries, panel.keys) for panel in panels if not panel.rollout})
    return None if name is None else Opening(name)


def site_over_image(sides: Mapping[str, tuple[Side, Side]]) -> str | None:
    """The last site, of these queries and keys, whose keys are an image, and whose queries are words if some are."""
    over_image = [name for name, (_, keys) in sides.items() if isinstance(keys.picture, Image)]
    by_words = [name for name in over_image if sides[name][0].picture is None]
    return next(reversed(by_words or over_image), None)


def keys_per_query(queries: int, keys: int, share: int, windows: tuple[Windows, Windows] | None = None) -> int:
    """The number of keys to keep for each query, if a head has a share of its weights; all if they almost fit."""
    if 4 * queries * keys <= 5 * share:
        return keys
    least = TOP_KEYS if max(queries, keys) <= LONG else TOP_KEYS_LONG
    return min(keys, window_keys(windows) or max(least, share // queries))


def window_keys(windows: tuple[Windows, Windows] | None) -> int:
    """The number of keys of a window that is small enough to be kept whole, else 0."""
    return windows[1].size if windows and windows[1].size <= WHOLE_WINDOW else 0


def cells(count: int, parts: int) -> np.ndarray:
    """Returns where each of the parts of a side begins, and the end: the n-th of r at floor(n * count / r)."""
    return np.arange(parts + 1) * count // parts


def pool(weights: Float32[np.ndarray, "H T S"]) -> Float32[np.ndarray, "H R C"]:
    """The small maps of heads whose weights are all known."""
    _, queries, keys = weights.shape
    over, along = cells(queries, min(queries, CELLS)), cells(keys, min(keys, CELLS))
    found = np.add.reduceat(np.add.reduceat(weights, along[:-1], 2), over[:-1], 1)
    return found / np.diff(over)[:, None].astype(np.float32)


def check_finite(name: str, *values: np.ndarray) -> None:
    """Raise UserError for weights of a site that are NaN or infinite: in a picture they would look like 0."""
    if not all(np.isfinite(each).all() for each in values):
        raise UserError(f"{name}: some weights are NaN, as after an overflow; there is no map to show")


def _weights_per_head(heads: int) -> int:
    return min(MAX_HEAD_WEIGHTS, max(MIN_HEAD_WEIGHTS, PAGE_WEIGHTS // heads))


def _make_panel(
    site: SiteLike, name: str, tokens: SidePair | Mapping[str, SidePair], example: int, share: int
) -> Panel:
    last = site.layers[-1] if isinstance(site, RolloutSite) else name
    batch, _, queries, keys = site.shape
    check_example(example, batch)
    if not queries or not keys:
        raise UserError(f"{name}: a map of {queries} queries and {keys} keys has nothing to show")
    sides_of = make_sides(tokens, last, queries, keys, site.windows)
    count = keys_per_query(queries, keys, share, site.windows)
    if count == keys:
        rows, maps, entropy = _all_weights(site, example)
    else:
        rows, maps, entropy = _largest_weights(site, example, count)
    check_finite(name, maps, rows.weights)
    shows = getattr(site, "shows", "weights")
    return Panel(name, *sides_of, rows, maps, entropy, site.windows, isinstance(site, RolloutSite), shows)


def _all_weights(site: SiteLike, example: int) -> tuple[TopWeights, np.ndarray, np.ndarray]:
    weights = _drop_negligible(_to_numpy(site.weights(), example), site)
    keys = np.broadcast_to(np.arange(weights.shape[2], dtype=np.int32), weights.shape)
    rows = TopWeights(keys, weights, np.zeros(weights.shape[:2], np.float32))
    return rows, pool(weights), _to_numpy(site.entropy(), example).mean(1)


def _largest_weights(site: SiteLike, example: int, count: int) -> tuple[TopWeights, np.ndarray, np.ndarray]:
    site.measure("top", "pooled", "entropy", top=count)
    found = site.top(count)
    weights, keys = (
        _drop_negligible(_to_numpy(found.weights, example), site),
        found.keys[example].cpu().numpy().astype(np.int32),
    )
    keys = np.where(weights != 0, keys, -1)
    order = np.argsort(np.where(keys < 0, np.iinfo(np.int32).max, keys), axis=2, kind="stable")
    weights, keys = np.take_along_axis(weights, order, 2), np.take_along_axis(keys, order, 2)
    maps = _to_numpy(site.pooled(CELLS, CELLS), example)
    total = np.ones(weights.shape[:2], np.float32)
    if (abs(maps.sum(2) - 1) > 1e-3).any():  # rows without weights, with a sink, or of something else than weights
        total = _to_numpy(site.pooled(weights.shape[1], 1), example)[..., 0]
    rest = total - weights.sum(2)
    if getattr(site, "shows", "") == DIFFERENCE:  # what is left may have any sign
        rest = np.zeros_like(rest)
    rest[(rest < ROUNDING * total) | (keys < 0).any(2)] = 0
    return TopWeights(keys, weights, rest), maps, _to_numpy(site.entropy(), example).mean(1)


def _to_numpy(values: Any, example: int) -> np.ndarray:
    return values[example].detach().cpu().float().numpy()


def _drop_negligible(weights: np.ndarray, site: SiteLike) -> np.ndarray:
    return np.where(weights < NEGLIGIBLE, 0, weights) if getattr(site, "shows", "weights") in OF_WEIGHTS else weights
