"""Where in a picture the windows of an image model lie: as its own layers say, and as the picture's size allows."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from foveate.interop.huggingface import parts
from foveate.sight import Sight, Windows

STAGES = 6
"""So many times at most the patches are halved from one stage of a model to a later one."""

LARGER = (2, 4)
"""How many patches down and across may become one query where a layer looks and halves at once."""

Pair = tuple[int, int]


def windows(model: nn.Module, config: Any, sight: Sight, size: Pair) -> dict[str, tuple[Windows, Windows]]:
    """The windows of queries and keys for each site that has some and whose model says how large they are.

    `size` is that of the picture, height and width in pixels.
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
        if along and over and (examples > 1 or along.padding):  # one whole window is a grid like any other
            found[name] = over, along
    return found


def has_windows(model: nn.Module) -> bool:
    """Whether some of a model looks within windows."""
    return any(_pair(getattr(module, "window_size", None), 1) for module in model.modules())


def patch_size(config: Any) -> Pair | None:
    """The height and width in pixels of a model's first patches, as its config or a part of it says."""
    sizes = (getattr(part, name, None) for part in parts(config) for name in ("patch_stride", "patch_size"))
    return next((pair for size in sizes if (pair := _pair(size, 1))), None)


def _windowed(model: nn.Module, path: str) -> nn.Module | None:
    """The nearest module around a site that says how large its windows are, of those that tell of a shift if any do."""
    around = []
    while path:
        around.append(model.get_submodule(path))
        path = path.rpartition(".")[0]
    having = [module for module in around if hasattr(module, "window_size")]
    return next((module for module in having if hasattr(module, "shift_size")), having[0] if having else None)


def _fitting(layer: nn.Module, patches: Pair, count: int, places: int) -> Windows | None:
    """The windows of a layer on so many patches, if they are `count` of so many places each."""
    window, shift = _pair(layer.window_size, 1), _pair(getattr(layer, "shift_size", 0), 0)
    if window is None or shift is None or any(by >= length for by, length in zip(shift, window, strict=True)):
        return None
    found = Windows(*patches, window, shift)
    return found if (found.grid[0] * found.grid[1], found.size) == (count, places) else None


def _larger(keys: Windows, places: int) -> Windows | None:
    """The windows of queries, of so many places each, that are larger patches than the keys."""
    for by in LARGER:
        window, shift = ((pair[0] // by, pair[1] // by) for pair in (keys.window, keys.shift))
        if min(window) and window[0] * window[1] == places:
            found = Windows(keys.height // by, keys.width // by, window, shift)
            return found if found.grid == keys.grid else None
    return None


def _stages(height: int, width: int) -> Iterator[Pair]:
    """How many patches there are, down and across, in each stage."""
    for _ in range(STAGES):
        yield height, width
        height, width = -(-height // 2), -(-width // 2)


def _pair(value: Any, least: int) -> Pair | None:
    """A size that may be given as one number or as two; nothing for other things, and for less than `least`."""
    values = [value, value] if isinstance(value, int) else value
    if isinstance(values, list | tuple) and len(values) == 2:
        down, right = values
        if isinstance(down, int) and isinstance(right, int) and min(down, right) >= least:
            return down, right
    return None
