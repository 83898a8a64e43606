"""Names of models, and of the queries and keys of each site, from its path and shape."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from foveate.sight.points import place_names
from foveate.sight.sight import Sight
from foveate.sight.site import Site
from foveate.viewer.sides import Audio, SideNames, SidePair

Naming: TypeAlias = Callable[[int], SideNames]
"""Returns the names of a side with this many positions; None if they are not known."""

_CROSS = re.compile(r"cross|enc(oder)?_?dec(oder)?_?|encoder_attn|encdec|inter_attention", re.IGNORECASE)


def token_names(labels: Sequence[str]) -> Naming:
    """Names for sides that have one position for each token of a text."""
    return lambda count: list(labels) if count == len(labels) else None


@dataclass
class DecoderNames:
    """The names of a decoder's positions."""

    read: Naming
    """Names of its input tokens, for self-attention."""
    written: Naming
    """Names of its output tokens, for cross-attention."""
    path: str
    """Path of the decoder in the model; "*" for a model that attends to what it writes alone."""
    count: int
    """Number of positions."""


def single_input_names(sight: Sight, naming: Naming) -> dict[str, SidePair]:
    """The names of queries and keys for a model with one input."""
    return {name: (_over(naming, site), naming(site.shape[3])) for name, site in _sites(sight).items()}


def encoder_decoder_names(sight: Sight, source: Naming, writer: DecoderNames) -> dict[str, SidePair]:
    """The names of queries and keys for a model with an encoder and a decoder."""
    found: dict[str, SidePair] = {}
    for name, site in _sites(sight).items():
        queries, keys = site.shape[2:]
        path = name.partition("#")[0]
        if writer.path == "*":
            found[name] = (writer.read(queries), writer.read(keys))
        elif path != writer.path and not path.startswith(f"{writer.path}."):
            found[name] = (_over(source, site), source(keys))
        elif path == writer.path or keys != writer.count or _CROSS.search(path.removeprefix(writer.path)):
            found[name] = (writer.written(queries), source(keys))
        else:
            found[name] = (writer.read(queries), writer.read(keys))
    return found


def cut_padding(sight: Sight, names: Mapping[str, SidePair]) -> Sight:
    """The sight without the positions behind the end of a sound, in all sites whose queries or keys are one."""
    sizes = {}
    for name, pair in names.items():
        sides = pair if isinstance(pair, tuple) else (pair, pair)
        counts = sight[name].shape[2:]
        heard = [side.heard if isinstance(side, Audio) else 1.0 for side in sides]
        if min(heard) < 1:
            sizes[name] = tuple(max(1, math.ceil(count * share)) for count, share in zip(counts, heard, strict=True))
    return sight.cut(sizes) if sizes else sight


def _over(naming: Naming, site: Site) -> SideNames:
    """The names of a site's queries: those of several feature maps tell in which map they are."""
    if site.maps is not None and site.shape[2] == sum(rows * columns for rows, columns in site.maps):
        return place_names(site.maps)
    return naming(site.shape[2])


def _sites(sight: Sight) -> Mapping:
    return {name: sight[name] for name in sight.sites}
