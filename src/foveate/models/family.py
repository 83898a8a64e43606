"""The row of a family of models, which says what there is without importing it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """A family and its presets."""

    name: str
    module: str
    """It has a MODEL, its CONFIG, the fields that each of its PRESETS sets, and the TRAINING that suits some of them.
    """
    presets: Mapping[str, tuple[int, str]]
    """The parameters of each preset, counted as `foveate.models.Preset` says, and a summary."""
    attending: tuple[str, ...] | None = None
    """The presets that attend, so that `foveate look` shows something; None if all do."""
    heads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The presets of each head, where a preset is for one; the others take the head that their task says."""
