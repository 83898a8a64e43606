"""The head of a page: everything except weights, as plain dataclasses that are written as JSON and read back.

The scripts of the page read the same fields, from the page itself or from a server.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foveate.errors import UserError
from foveate.sight.layouts import Windows
from foveate.sight.measured_look import DIFFERENCE, MEASURES
from foveate.viewer.document import Document, Effect, EffectPanel, Opening, Panel, PlaceEffects
from foveate.viewer.page.packing import MAP_BITS, PanelShape, panel_shape, precision, unpack, unpack_points
from foveate.viewer.point_panel import PointPanel
from foveate.viewer.sides import Audio, Image, Side, picture_type

FORMAT = "foveate/page/1"

MOST_WEIGHTS = 2**28
"""Maximum number of weights of one site that are read, so that a damaged page cannot exhaust the memory."""


@dataclass(frozen=True)
class PictureHead:
    """The picture of a side."""

    kind: Literal["image", "audio"]
    type: str
    place: int
    """Number of the picture in the page."""
    height: int = 0
    width: int = 0
    """Number of patches, for an image."""
    seconds: float = 0.0
    """Duration of a sound."""


@dataclass(frozen=True)
class SideHead:
    """The queries or the keys of some sites."""

    count: int
    labels: tuple[str, ...]
    picture: PictureHead | None = None


@dataclass(frozen=True)
class SiteHead:
    """One site, without its weights."""

    name: str
    group: str
    layer: str
    heads: int
    queries: int
    keys: int
    """Number of the side in the page."""
    kept: int
    """Number of keys whose weights are kept for each query: all, or those with the largest weights."""
    bits: int
    precision: float
    map_precision: float
    """Maximum relative error of the weights in the rows, and in the small maps."""
    entropy: tuple[float, ...]
    windows: tuple[Windows, ...] = ()
    """The windows of queries and of keys, if there are any."""
    rollout: bool = False
    """Whether it is the rollout through a stack of layers."""
    shows: str = "weights"
    """What its map shows; a page with several measures has a site for each."""
    unit: float = 1.0
    """What its numbers are stored as shares of."""
    points: int = 0
    """Points of feature maps that each query looks at, equally many of each map."""
    grids: tuple[tuple[int, int], ...] = ()
    """Rows and columns of these maps."""


@dataclass(frozen=True)
class EffectHead:
    """Effects, each with whether it was measured: else it is an estimate."""

    changes: tuple[float, ...]
    exact: tuple[bool, ...]


@dataclass(frozen=True)
class PlacesHead:
    """The effects of places of the input that are shown together: see `PlaceEffects`."""

    site: str
    places: tuple[int, ...]
    effects: EffectHead


@dataclass(frozen=True)
class EffectsHead:
    """What the answer needs: see `EffectPanel`."""

    answer: str
    score: str
    value: float
    sites: tuple[str, ...]
    heads: tuple[EffectHead, ...]
    """Of each site: one for each head."""
    layers: EffectHead
    """One for each site."""
    places: tuple[PlacesHead, ...]
    """Of the input; none where these are not known."""


@dataclass(frozen=True)
class Head:
    """The whole page."""

    format: str
    title: str
    notes: tuple[str, ...]
    sites: tuple[SiteHead, ...]
    sides: tuple[SideHead, ...]
    effects: EffectsHead | None = None
    opening: Opening | None = None


def make_head(document: Document) -> tuple[Head, list[bytes]]:
    """The head of a document's page, and its pictures. Sides that several sites share are stored once."""
    pictures: dict[bytes, int] = {}
    sides: dict[SideHead, int] = {}
    sites = []
    for panel in document.sites:
        over, along = (sides.setdefault(_side_head(side, pictures), len(sides)) for side in (panel.queries, panel.keys))
        sites.append(_site_head(panel, over, along))
    effects = None if document.effects is None else _effects_head(document.effects)
    head = Head(FORMAT, document.title, tuple(document.notes), tuple(sites), tuple(sides), effects, document.opening)
    return head, list(pictures)


def restore_document(
    head: Head, pictures: Callable[[int], bytes], blocks: Callable[[int], Mapping[str, bytes]]
) -> Document:
    """The document of a page, from its head, its pictures and the blocks of each site.

    Raises UserError if they do not match.
    """
    if head.format != FORMAT:
        raise UserError(f"the page has the format '{head.format}', but this version of foveate reads '{FORMAT}'")
    try:
        sides = {place: _side(side, pictures) for place, side in enumerate(head.sides)}
        panels = [_panel(site, sides, blocks(place)) for place, site in enumerate(head.sites)]
    except LookupError as error:
        raise UserError(f"the page is damaged: {error} is missing") from None
    effects = None if head.effects is None else _effects(head.effects)
    return Document(head.title, panels, list(head.notes), effects, head.opening)


def _effects_head(panel: EffectPanel) -> EffectsHead:
    heads = tuple(_effect_head(own) for own in panel.heads.values())
    layers = _effect_head([*panel.layers.values()])
    places = tuple(PlacesHead(part.site, (*part.places,), _effect_head(part.effects)) for part in panel.places)
    return EffectsHead(panel.answer, panel.score_name, panel.value, (*panel.heads,), heads, layers, places)


def _effect_head(effects: Sequence[Effect]) -> EffectHead:
    changes = (float(f"{one.change:.4g}") for one in effects)
    return EffectHead(tuple(changes), tuple(one.exact for one in effects))


def _effects(head: EffectsHead) -> EffectPanel:
    def effects(of: EffectHead) -> list[Effect]:
        if len(of.changes) != len(of.exact):
            raise UserError(f"the page is damaged: {len(of.changes)} effects, and {len(of.exact)} notes about them")
        return [Effect(change, exact) for change, exact in zip(of.changes, of.exact, strict=True)]

    layers = effects(head.layers)
    if not len(head.sites) == len(head.heads) == len(layers):
        raise UserError("the page is damaged: its effects are of other sites than it names")
    places = [PlaceEffects(part.site, part.places, effects(part.effects)) for part in head.places]
    if any(len(part.places) != len(part.effects) for part in places):
        raise UserError("the page is damaged: its effects are of other places than it names")
    return EffectPanel(
        head.answer,
        head.score,
        head.value,
        dict(zip(head.sites, map(effects, head.heads), strict=True)),
        dict(zip(head.sites, layers, strict=True)),
        places,
    )


def _site_head(panel: Panel, queries: int, keys: int) -> SiteHead:
    shape = panel_shape(panel)
    return SiteHead(
        name=panel.name,
        group=panel.group,
        layer=panel.layer,
        heads=shape.heads,
        queries=queries,
        keys=keys,
        kept=shape.kept,
        bits=shape.bits,
        precision=float(f"{precision(shape.bits):.2g}"),
        map_precision=float(f"{precision(shape.bits if shape.exact else MAP_BITS):.2g}"),
        entropy=tuple(float(f"{value:.4g}") for value in panel.entropy),
        windows=panel.windows or (),
        rollout=panel.rollout,
        shows=panel.shows,
        unit=float(f"{panel.unit:.6g}"),
        points=0 if panel.points is None else panel.points.count,
        grids=() if panel.points is None else panel.points.grids,
    )


def _side_head(side: Side, pictures: dict[bytes, int]) -> SideHead:
    picture, found = side.picture, None
    if picture is not None:
        kind, place = picture_type(picture.data), pictures.setdefault(picture.data, len(pictures))
        if isinstance(picture, Image):
            found = PictureHead("image", kind, place, height=picture.height, width=picture.width)
        else:
            found = PictureHead("audio", kind, place, seconds=float(picture.seconds))
    return SideHead(side.count, tuple(side.labels), found)


def _side(side: SideHead, pictures: Callable[[int], bytes]) -> Side:
    picture = side.picture
    if picture is None:
        return Side(side.count, side.labels)
    data = pictures(picture.place)
    if picture.kind == "image":
        return Side(side.count, side.labels, Image(data, picture.height, picture.width, side.labels))
    return Side(side.count, side.labels, Audio(data, picture.seconds, side.labels))


def _panel(site: SiteHead, sides: Mapping[int, Side], blocks: Mapping[str, bytes]) -> Panel:
    over, along = sides[site.queries], sides[site.keys]
    shape = PanelShape(site.heads, over.count, along.count, site.kept)
    sizes = shape.heads, shape.queries, shape.kept
    if min(sizes) < 1 or math.prod(sizes) > MOST_WEIGHTS or shape.kept > shape.keys:
        raise UserError(f"the page is damaged: {site.name} cannot have the shape {shape}")
    if len(site.entropy) != shape.heads:
        raise UserError(f"the page is damaged: {site.name} has {len(site.entropy)} entropies for {shape.heads} heads")
    if site.shows not in (*MEASURES, DIFFERENCE) or not 0 < site.unit < math.inf:
        raise UserError(f"the page is damaged: {site.name} cannot show {site.shows} in units of {site.unit}")
    rows, maps = unpack(shape, blocks, site.unit)
    return Panel(
        site.name,
        over,
        along,
        rows,
        maps,
        np.array(site.entropy, np.float32),
        _windows(site, shape),
        site.rollout,
        site.shows,
        site.unit,
        _points(site, shape, blocks),
    )


def _points(site: SiteHead, shape: PanelShape, blocks: Mapping[str, bytes]) -> PointPanel | None:
    if not site.points:
        return None
    count = (shape.heads, shape.queries, site.points)
    if min(count) < 1 or math.prod(count) > MOST_WEIGHTS or not site.grids or site.points % len(site.grids):
        raise UserError(f"the page is damaged: {site.name} cannot have {site.points} points of {site.grids}")
    return unpack_points(blocks["points"], count, site.grids)


def _windows(site: SiteHead, shape: PanelShape) -> tuple[Windows, Windows] | None:
    if not site.windows:
        return None
    counts = [each.height * each.width for each in site.windows]
    if counts != [shape.queries, shape.keys] or len({each.grid for each in site.windows}) > 1:
        raise UserError(f"the page is damaged: {site.name} cannot have the windows {site.windows}")
    over, along = site.windows
    return over, along
