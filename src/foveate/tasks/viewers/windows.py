"""Finds the windows of an image model in the picture, from its layers and the size of the picture."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from foveate.interop.huggingface import vision_configs
from foveate.sight import Sight, Windows

STAGES = 6
"""Maximum number of stages, each of which halves the number of patches down and across."""

LARGER = (2, 4)
"""Numbers of patches, down and across, that may form one query in a layer that also downsamples."""

Pair = tuple[int, int]


def find_windows(model: nn.Module, config: Any, sight: Sight, size: Pair) -> dict[str, tuple[Windows, Windows]]:
    """The windows of queries and keys, for each site that has windows of a known size.

    `size` is the height and width of the picture in pixels.
    """
    found = {}
    patch = patch_size(config)
    for name in sight.sites:
        layer = _windowed(model, name.partition("#")[0])
        if layer is None or patch is None:
            continue
        examples, _, queries, keys = sight[name].shape
        stages = _stages(-(-size[0] // patch[0]), -(-size[1] // patch[1]))
        along = next((fit for each in stages if (fit := _fitting(layer, each, examples, keys))), None)
        over = along if queries == keys or along is None else _larger(along, queries)
        if along and over and (examples > 1 or along.padding):  # a single window without padding is just a grid
            found[name] = over, along
    return found


def has_windows(model: nn.Module) -> bool:
    """Whether some layers of a model attend within windows."""
    return any(_pair(getattr(module, "window_size", None), 1) for module in model.modules())


def patch_size(config: Any) -> Pair | None:
    """The height and width in pixels of a model's first patches, from its config."""
    sizes = (getattr(part, name, None) for part in vision_configs(config) for name in ("patch_stride", "patch_size"))
    return next((pair for size in sizes if (pair := _pair(size, 1))), None)


def _windowed(model: nn.Module, path: str) -> nn.Module | None:
    """The innermost module around a site that has a window size, preferably with a shift."""
    around = []
    while path:
        around.append(model.get_submodule(path))
        path = path.rpartition(".")[0]
    having = [module for module in around if hasattr(module, "window_size")]
    return next((module for module in having if hasattr(module, "shift_size")), having[0] if having else None)


def _fitting(layer: nn.Module, patches: Pair, count: int, places: int) -> Windows | None:
    """The windows of a layer over this many patches, if there are `count` windows of `places` positions."""
    window, shift = _pair(layer.window_size, 1), _pair(getattr(layer, "shift_size", 0), 0)
    if window is None or shift is None or any(by >= length for by, length in zip(shift, window, strict=True)):
        return None
    found = Windows(*patches, window, shift)
    return found if (found.grid[0] * found.grid[1], found.size) == (count, places) else None


def _larger(keys: Windows, places: int) -> Windows | None:
    """The windows of queries with this many positions, where a query is a larger patch than a key."""
    for by in LARGER:
        window, shift = ((pair[0] // by, pair[1] // by) for pair in (keys.window, keys.shift))
        if min(window) and window[0] * window[1] == places:
            found = Windows(keys.height // by, keys.width // by, window, shift)
            return found if found.grid == keys.grid else None
    return None


def _stages(height: int, width: int) -> Iterator[Pair]:
    """The numbers of patches, down and across, in each stage."""
    for _ in range(STAGES):
        yield height, width
        height, width = -(-height // 2), -(-width // 2)


def _pair(value: Any, least: int) -> Pair | None:
    """A size that is given as one number or two; None for anything else, and if it is less than `least`."""
    values = [value, value] if isinstance(value, int) else value
    if isinstance(values, list | tuple) and len(values) == 2:
        down, right = values
        if isinstance(down, int) and isinstance(right, int) and min(down, right) >= least:
            return down, right
    return None
