"""The models, by family and preset: one page for each family, and one row in the package that holds the page.

The rows say what there is; a family is imported when it is asked for more. `create` builds any preset; `build` makes a
model from a family's name and config, as a saved folder has them.
"""

import importlib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from foveate.config import FromData
from foveate.errors import unknown
from foveate.lazy import import_late
from foveate.models import multimodal, speech, text, vision
from foveate.models.family import Family

if TYPE_CHECKING:
    from foveate.models.construction import build as build
    from foveate.models.construction import create as create

FAMILIES: Mapping[str, Family] = {row.name: row for kind in (text, vision, speech, multimodal) for row in kind.FAMILIES}
"""The row of each family."""

COUNTED = {
    "classes": 2,
    "spellings": 2**14,
    "conditions": 1,
    "codes": 512,
    "side": 16,
    "points": 17,
    "bands": 80,
    "frames": 1024,
    "features": 64,
    "actions": 8,
}
"""The sizes of data with which the parameters in the rows are counted, where a preset has none of its own."""

VOCABULARY = 8000
"""The size of a vocabulary, in the same way."""

VOCABULARIES = {"vocabulary", "src_vocab", "tgt_vocab"}
"""The sizes of data that a tokenizer decides; public models have rows that no token has."""

__getattr__ = import_late(__name__, dict.fromkeys(("build", "create"), "foveate.models.construction"))


@dataclass(frozen=True)
class Preset:
    """A named configuration of a family; sizes that depend on data, such as a vocabulary's, are those of its paper or
    left open."""

    name: str
    family: str
    parameters: int
    """Counted with the preset's own `sizes`, or with `COUNTED` and `VOCABULARY`."""
    summary: str

    @property
    def attends(self) -> bool:
        """Whether `foveate look` has something to show of it, as its family's row says."""
        attending = FAMILIES[self.family].attending
        return attending is None or self.name in attending

    @property
    def head(self) -> str | None:
        """What it predicts, as its family's row says; None if that is its task's choice."""
        return next((head for head, names in FAMILIES[self.family].heads.items() if self.name in names), None)

    @property
    def values(self) -> dict[str, Any]:
        """The fields that it sets."""
        return dict(family_module(self.family).PRESETS[self.name])

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of its paper's data, such as a vocabulary's, that it has unless other data decides; empty for a
        preset without a paper's data."""
        return dict(getattr(family_module(self.family), "SIZES", {}).get(self.name, {}))

    def all_sizes(self, vocabulary: int | None = None) -> dict[str, int]:
        """All sizes that data decides: its own, or those with which parameters are counted. A `vocabulary` is that of
        every vocabulary."""
        own = self.sizes
        found = {name: own.get(name, COUNTED.get(name, VOCABULARY)) for name in sizes_of_data(self.family)}
        return found if vocabulary is None else found | dict.fromkeys(VOCABULARIES & found.keys(), vocabulary)

    @property
    def training(self) -> dict[str, Any]:
        """Settings that it is best trained with, where they differ from its task's."""
        return dict(getattr(family_module(self.family), "TRAINING", {}).get(self.name, {}))


def presets(families: Collection[str] | None = None, head: str | None = None) -> dict[str, Preset]:
    """All presets by name, or those of some families that can have the `head`."""
    found = (
        Preset(name, row.name, parameters, summary)
        for row in FAMILIES.values()
        for name, (parameters, summary) in row.presets.items()
        if families is None or row.name in families
    )
    return {preset.name: preset for preset in found if families is None or preset.head in (None, head)}


def preset(name: str) -> Preset:
    """A preset by its name; UserError with the nearest names if there is none."""
    known = presets()
    if name not in known:
        raise unknown("model", name, known)
    return known[name]


def config_class(family: str) -> type[Any]:
    """The dataclass that configures a family."""
    return family_module(family).CONFIG


def family_of(config: Any) -> str:
    """The family whose page has the class of a config."""
    return next(row.name for row in FAMILIES.values() if row.module == type(config).__module__)


def sizes_of_data(family: str, required: bool = False) -> list[str]:
    """The names of a family's fields that the data decides, such as a vocabulary's size; only those without a default
    if they must be `required`."""
    config = config_class(family)
    kinds = get_type_hints(config, include_extras=True)
    defaults = {part.name for part in fields(config) if part.default is not MISSING}
    return [name for name, kind in kinds.items() if kind == FromData and not (required and name in defaults)]


def family_module(family: str) -> Any:
    """The page of a family."""
    if family not in FAMILIES:
        raise unknown("family of models", family, FAMILIES)
    return importlib.import_module(FAMILIES[family].module)
