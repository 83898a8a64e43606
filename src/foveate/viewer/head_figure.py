"""Heads of one look, or of several, as one figure for a paper: of texts as heatmaps, of an image over the image."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
import PIL.Image
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Picture
from foveate.errors import UserError
from foveate.sight.measured_look import MEASURES
from foveate.sight.measures import resolve_choice
from foveate.sight.site import Site
from foveate.viewer.document import site_over_image
from foveate.viewer.figures import plot_alignments, plot_running_texts, plot_word_rows
from foveate.viewer.maps import Alignment, WordRow
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Image, Side, make_sides

READABLE = 64
"""Maps with at most this many queries and keys are drawn cell by cell; longer ones are pooled to as many cells."""

MOST_WORDS = 12
"""Words that are drawn over an image, at most."""


def draw_heads(
    looks: Sequence[LookResult], heads: Sequence[int] = (), title: str | None = None, running_text: bool = False
) -> Picture:
    """These heads, or their mean, of the site that each look's page opens with, or else of its last one.

    A `title` stands in place of the site's name. As `running_text`, the keys are a text that is darker where each query
    looked. Raises UserError where there is nothing to draw, no such head, or an
    image beside a text.
    """
    maps: list[Alignment] = []
    rows: list[WordRow] = []
    for look in looks:
        site, queries, keys = _site_of(look)
        image = keys.picture if isinstance(keys.picture, Image) else None
        for name, weights in _maps_of(site, heads, pooled=image is None):
            about = [title or site.name, name, look.title if len(looks) > 1 else ""]
            shown = ", ".join(filter(None, about))
            if image is None:
                over, along = (label_cells(*side) for side in zip((queries, keys), weights.shape, strict=True))
                maps.append(Alignment(weights, over, along, shown, MEASURES[site.shows]))
            else:
                rows.append(_over_image(shown, weights, queries, image))
    if maps and rows:
        raise UserError("--picture draws texts or images: one look is over an image, the other is not")
    if rows and running_text:
        raise UserError("--running-text draws texts, and the look is over an image: leave it out")
    if rows:
        assert rows[0].pixels is not None
        return plot_word_rows(rows[0].pixels, rows)
    return plot_running_texts(maps) if running_text else plot_alignments(maps)


def _site_of(look: LookResult) -> tuple[Site, Side, Side]:
    """The site that the page opens with, or the last one; its queries and keys."""
    if not look.sight.sites:
        raise UserError("the model attends nowhere: there is nothing to draw")
    sides = {site.name: make_sides(look.tokens, site.name, *site.shape[2:]) for site in look.sight}
    opening = look.opening.site if look.opening is not None else None
    name = opening if opening in sides else site_over_image(sides) or [*sides][-1]
    return look.sight[name], *sides[name]


def _maps_of(site: Site, heads: Sequence[int], pooled: bool) -> list[tuple[str, Float[Tensor, "T S"]]]:
    """The name and the map of each head, or their mean."""
    count = site.shape[1]
    numbers = resolve_choice(list(heads) if heads else slice(None), count, "head")
    found = (readable_maps(site, numbers, 0) if pooled else site.weights(heads=numbers)[0]).detach().float().cpu()
    if not heads and count > 1:
        return [(f"mean of {count} heads", found.mean(0))]
    return [(f"head {number}" if count > 1 else "", one) for number, one in zip(numbers, found, strict=True)]


def readable_maps(site: Site, heads: Sequence[int], example: int) -> Float[Tensor, "H T S"]:
    """The maps of some heads, with at most `READABLE` cells on a side."""
    if max(site.shape[2:]) <= READABLE:
        return site.weights(heads=heads)[example]
    return site.pooled(READABLE, READABLE)[example, heads]


def label_cells(side: Side, cells: int) -> list[str]:
    """The names of positions, or their numbers; the label of a pooled cell is that of its first position."""
    firsts = [cell * side.count // cells for cell in range(cells)]
    return [side.labels[first] if first < len(side.labels) else str(first) for first in firsts]


def _over_image(name: str, weights: Float[Tensor, "T S"], queries: Side, image: Image) -> WordRow:
    """Where each word looks in an image; without words, where all queries look on average."""
    pixels = np.asarray(PIL.Image.open(BytesIO(image.data)).convert("RGB"))
    grid = weights[:, len(image.before) :].reshape(-1, image.height, image.width)
    words = list(queries.labels) if queries.picture is None else []
    if not words:
        return WordRow(name, ["mean of queries"], grid.mean(0, keepdim=True), pixels)
    return WordRow(name, words[:MOST_WORDS], grid[:MOST_WORDS], pixels)
