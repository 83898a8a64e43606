"""Places of a grid over an image, and looks at models whose maps are windows of one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from foveate.forms.naming import Naming
from foveate.nn import WindowAttention
from foveate.sight import Sight, Windows
from foveate.sight.measured_look import Target, check_windows, finished, measured_look
from foveate.viewer.sides import Image

GridFinder: TypeAlias = Callable[[int], tuple[int, int, int]]
"""Rows and columns of the grid that a number of places is, and how many tokens are before it."""


def grid_of(places: int) -> tuple[int, int, int]:
    """Rows and columns of a square grid of this many places, and how many places, at most one, are before it."""
    for first in (0, 1):
        side = round((places - first) ** 0.5)
        if side * side == places - first:
            return side, side, first
    return 1, places, 0


def find_grid(model: Any, inputs: Mapping[str, Any]) -> GridFinder:
    """How a model lays out the places of its input `pixels`: by its method `grid_of_places` or `grid_size`, or as a
    square."""
    if "pixels" in inputs and hasattr(model, "grid_of_places"):
        height, width = inputs["pixels"].shape[-2:]
        return lambda places: model.grid_of_places(height, width, places)
    if "pixels" not in inputs or not hasattr(model, "grid_size"):
        return grid_of
    rows, columns = model.grid_size(*inputs["pixels"].shape[-2:])
    most = max(2, getattr(model, "tokens_before", 0))
    return lambda places: (
        (rows, columns, places - rows * columns) if 0 <= places - rows * columns <= most else grid_of(places)
    )


def grid_names(picture: np.ndarray, grid: GridFinder = grid_of) -> Naming:
    """Names for sides whose places are a grid over a picture (h, w, channels), perhaps behind a class token and
    others."""

    def names(count: int) -> Image | None:
        rows, columns, first = grid(count)
        return Image.of(picture, rows, columns, _token_names(first)) if rows > 1 else None

    return names


def _token_names(count: int) -> list[str]:
    """The class token, and tokens between it and the places."""
    return ["[CLASS]", *(f"[TOKEN {number}]" for number in range(2, count + 1))][:count]


def look_at_maps(
    model: nn.Module,
    run: Callable[[], Any],
    sites: Sequence[str] | None = None,
    measure: str = "weights",
    target: Target | None = None,
) -> Sight:
    """A sight of a model that runs, with windows of a feature map put back in place, and points of several maps summed
    to one. Its maps are those of a measure, of `target` if that needs one (see `measured_look`)."""
    windows: dict[str, Windows] = {}

    def note(name: str, layer: WindowAttention, inputs: tuple[torch.Tensor, ...]) -> None:
        height, width = inputs[0].shape[1:3]
        windows[f"{name}.attention"] = Windows(height, width, *layer.layout(height, width))

    check_windows(measure, any(isinstance(layer, WindowAttention) for layer in model.modules()))
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, WindowAttention)}
    hooks = [layer.register_forward_pre_hook(partial(note, name)) for name, layer in layers.items()]
    try:
        sight, _ = measured_look(model, run, measure, sites, target)
    finally:
        for hook in hooks:
            hook.remove()
    whole = sight.merge_windows({name: of for name, of in windows.items() if name in sight.sites}).sum_points()
    return finished(whole, measure)
