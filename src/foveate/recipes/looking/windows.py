"""Where in a picture the windows of an image model lie: as its own layers say, and as the picture's size allows."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from foveate.sight import Sight, Windows

STAGES = 6
"""So many times at most the patches are halved from one stage of a model to a later one."""

SHRUNK = (1, 2, 4)
"""By how much queries may be fewer than keys, down and across, where a layer halves the patches while it looks."""


def windows(model: nn.Module, config: Any, sight: Sight, size: tuple[int, int]) -> dict[str, tuple[Windows, Windows]]:
    """The windows of queries and keys for each site that has some and whose model says how large they are.

    `size` is that of the picture, height and width in pixels.
    """
    found = {}
    for name in sight.sites:
        examples, _, queries, keys = sight[name].shape
        layer = _windowed(model, name.partition("#")[0]) if examples > 1 else None
        if layer is not None:
            sides = tuple(_fitting(layer, config, size, examples, count) for count in (queries, keys))
            if None not in sides:
                found[name] = sides
    return found  # type: ignore[return-value]


def patch_sizes(config: Any) -> tuple[int, int] | None:
    """The height and width in pixels of a model's first patches, as its config or a part of it says."""
    for part in (config, *(getattr(config, name, None) for name in ("encoder", "vision_config", "backbone_config"))):
        for name in ("patch_stride", "patch_size"):
            if pair := _pair(getattr(part, name, None)):
                return pair
    return None


def _windowed(model: nn.Module, path: str) -> nn.Module | None:
    """The module of a site, or the nearest around it, that says how large its windows are."""
    while path:
        module = model.get_submodule(path)
        if hasattr(module, "window_size"):
            return module
        path = path.rpartition(".")[0]
    return None


def _fitting(layer: nn.Module, config: Any, size: tuple[int, int], count: int, places: int) -> Windows | None:
    """The windows of a layer, `count` of so many places each, on the patches of one of the model's stages."""
    window, shift, patch = _pair(layer.window_size), _pair(getattr(layer, "shift_size", 0)), patch_sizes(config)
    if window is None or patch is None:
        return None
    for height, width in _stages(-(-size[0] // patch[0]), -(-size[1] // patch[1])):
        for by in SHRUNK:
            small, rolled = ((over // by, along // by) for over, along in (window, shift or (0, 0)))
            if min(small) and -(-height // small[0]) * -(-width // small[1]) == count and small[0] * small[1] == places:
                return Windows(height, width, small, rolled)
    return None


def _stages(height: int, width: int) -> Iterator[tuple[int, int]]:
    """How many patches there are, down and across, in each stage."""
    for _ in range(STAGES):
        yield height, width
        height, width = -(-height // 2), -(-width // 2)


def _pair(value: Any) -> tuple[int, int] | None:
    """A size that may be given as one number or as two; nothing for 0."""
    values = [value, value] if isinstance(value, int) else value
    if isinstance(values, list | tuple) and len(values) == 2 and all(isinstance(n, int) and n > 0 for n in values):
        return values[0], values[1]
    return None
