"""Where text and image are in the maps of a model that draws from a caption.

Some models attend from the image to the text; others join both to one sequence, the text before or after the image.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from foveate.sight import Sight, look
from foveate.sight.parts import Parts

MAX_EXTRA = 16
"""Most positions of a sequence that are neither text nor image, such as registers."""

Size = tuple[int, int]


def grid_size(places: int, ratio: float) -> Size | None:
    """Rows and columns of this many places in an image with this ratio of width to height; None without a grid."""
    for rows in {round((places / ratio) ** 0.5), int((places / ratio) ** 0.5)}:
        if rows and places % rows == 0 and abs(places // rows - ratio * rows) < 1:
            return rows, places // rows
    return None


def parts_of(positions: int, text: int, ratio: float, text_first: bool) -> Parts | None:
    """The parts of a sequence of this many positions; None where it is text or image alone, or is not understood."""
    if positions == text or grid_size(positions, ratio):
        return None
    for extra in range(min(MAX_EXTRA, positions - text) + 1):
        image = positions - text - extra
        if image and grid_size(image, ratio):
            parts = {"extra": extra, "text": text, "image": image}
            return parts if text_first else {name: parts[name] for name in ("image", "text", "extra")}
    return None


def part_joint(sight: Sight, text: int, ratio: float, text_first: bool) -> Sight:
    """The sight with its joint sequences cut into text and image."""
    found: dict[str, Parts | tuple[Parts, Parts]] = {}
    for name in sight.sites:
        queries, keys = (
            parts_of(count, text, ratio, text_first) or {kind_of(count, text): count} for count in sight[name].shape[2:]
        )
        if len(queries) > 1 or len(keys) > 1:
            found[name.replace("[", "[[]")] = queries, keys
    return sight.part(found) if found else sight


def kind_of(count: int, text: int) -> str:
    """Whether a side of this many positions that is one part is text or image."""
    return "text" if count == text else "image"


def text_is_first(model: nn.Module, run: Callable[[Tensor], Any], given: Tensor, sites: list[str]) -> bool:
    """Whether the text is before the image in the first of the sites, which has both.

    Found by another text: `run(text)` runs the model, and the keys of the text change the most.
    """
    generator = torch.Generator(given.device).manual_seed(0)
    other = torch.randn(given.shape, generator=generator, device=given.device, dtype=given.dtype) * given.std()
    found = []
    for text in (given, other):
        with torch.inference_mode(), look(model, sites=sites[:1]) as sight:
            run(text)
        site = sight[sight.sites[0]]
        found.append(site.keys.read(site.calls[0].span).float())
    change = (found[0] - found[1]).abs().flatten(0, -3).mean((0, -1))
    length = given.shape[1]
    return bool(change[:length].mean() >= change[-length:].mean())
