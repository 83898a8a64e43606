"""What the two sides of each site are called, from the site's path and its shape; and what a model is called."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from foveate.sight.sight import Sight
from foveate.viewer.sides import SideNames, SidePair

Naming: TypeAlias = Callable[[int], SideNames]
"""What the places of a side are called that has so many; None where that is not known."""

_CROSS = re.compile(r"cross|enc(oder)?_?dec(oder)?_?|encoder_attn|encdec|inter_attention", re.IGNORECASE)


def model_name(description: Mapping[str, Any], folder: Path) -> str:
    """The preset (or family) of a trained model that foveate saved, and where it lies."""
    return f"{description['recipe'].get('model', description['family'])} from {folder}"


def tokens(labels: Sequence[str]) -> Naming:
    """The tokens of a text, for sides that have one place for each."""
    return lambda count: list(labels) if count == len(labels) else None


@dataclass
class Writer:
    """The decoder of a model that reads one side and writes another."""

    read: Naming
    """What the decoder is fed: names its places where it looks at itself."""
    written: Naming
    """What it writes there: names its places where it looks at the source."""
    path: str
    """Where in the model the decoder is."""
    count: int
    """How many places it has."""


def one_side(sight: Sight, naming: Naming) -> dict[str, SidePair]:
    """The names of a model that has one input: both sides of each site."""
    return {name: (naming(site.shape[2]), naming(site.shape[3])) for name, site in _sites(sight).items()}


def two_sides(sight: Sight, source: Naming, writer: Writer) -> dict[str, SidePair]:
    """The names of a model that reads a source and writes: encoder, decoder and what lies between."""
    found: dict[str, SidePair] = {}
    for name, site in _sites(sight).items():
        queries, keys = site.shape[2:]
        path = name.partition("#")[0]
        if path != writer.path and not path.startswith(f"{writer.path}."):
            found[name] = (source(queries), source(keys))
        elif path == writer.path or keys != writer.count or _CROSS.search(path.removeprefix(writer.path)):
            found[name] = (writer.written(queries), source(keys))
        else:
            found[name] = (writer.read(queries), writer.read(keys))
    return found


def _sites(sight: Sight) -> Mapping:
    return {name: sight[name] for name in sight.sites}
