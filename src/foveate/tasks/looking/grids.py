"""A look at one of foveate's models that reads an image and has no other input."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import nn

from foveate.nn import WindowAttention
from foveate.sight import Sight, Windows, look
from foveate.tasks.looking.images import open_image
from foveate.tasks.looking.inputs import check_length, require_file
from foveate.tasks.looking.naming import Naming, single_input_names
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.tasks.predictor import Predictor
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import Image


def grid_of(places: int) -> tuple[int, int, int]:
    """Rows and columns of a square grid of so many places, and how many places, at most one, are before it."""
    for first in (0, 1):
        side = round((places - first) ** 0.5)
        if side * side == places - first:
            return side, side, first
    return 1, places, 0


def grid_names(picture: np.ndarray) -> Naming:
    """Names for sides whose places are a square grid over a picture (h, w, channels), perhaps behind a class token."""

    def names(count: int) -> Image | None:
        rows, columns, first = grid_of(count)
        return Image.of(picture, rows, columns, ["[CLASS]"] * first) if rows > 1 else None

    return names


def look_at_maps(model: nn.Module, run: Callable[[], Any], sites: Sequence[str] | None = None) -> Sight:
    """A sight of a model that runs, with windows of a feature map put back in place."""
    windows: dict[str, Windows] = {}

    def note(name: str, layer: WindowAttention, inputs: tuple[torch.Tensor, ...]) -> None:
        height, width = inputs[0].shape[1:3]
        windows[f"{name}.attention"] = Windows(height, width, *layer.layout(height, width))

    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, WindowAttention)}
    hooks = [layer.register_forward_pre_hook(partial(note, name)) for name, layer in layers.items()]
    try:
        with torch.inference_mode(), look(model, sites=sites) as sight:
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return sight.merge_windows({name: of for name, of in windows.items() if name in sight.sites})


def look_at_image(
    predictor: Predictor,
    given: Input,
    max_length: int,
    sites: Sequence[str] | None,
    answer: Callable[[PIL.Image.Image], str],
) -> LookResult:
    """A look at a model whose processor has `pixels` and a `format`, while it reads an image.

    Raises UserError for an input that is no image, and for a model that does not attend.
    """
    name = predictor.name
    file = require_file(given, name, "image")
    image = open_image(file)
    inputs = {"pixels": predictor.processor.pixels([image])}
    sight = look_at_maps(predictor.model, lambda: predictor.forward(inputs), sites)
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    check_length(max(sight[site].shape[-1] for site in sight.sites), max_length, "the image", "places")
    shown = predictor.processor.format.pixels(image).transpose(1, 2, 0)
    names = single_input_names(sight, grid_names(np.ascontiguousarray(shown)))
    return LookResult(sight, names, file.name, [name, f"Answer: {answer(image)}", *sight.notes])
