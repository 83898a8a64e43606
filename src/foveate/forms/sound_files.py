"""What tasks share that are given sound files."""

from collections.abc import Sequence
from pathlib import Path

from foveate.data.sounds.labelled import sounds_below
from foveate.data.sounds.spectrograms import LogMel
from foveate.errors import UserError

MOST_RATE = 16_000
"""Sounds of higher sampling rates are resampled to this one, unless another is given."""


def choose_log_mel(own_rate: int, rate: int | None, bands: int | None) -> LogMel:
    """The spectrograms of sounds that have `own_rate`, by what a user gave. Raises UserError for what cannot be."""
    rate = min(own_rate, MOST_RATE) if rate is None else rate
    made = LogMel(rate, (40 if rate <= 8000 else 80) if bands is None else bands)
    made.check()
    return made


def sound_files(places: Sequence[str]) -> list[str]:
    """The files that are named, and all sounds in the folders that are named. UserError for a folder without any."""
    files: list[str] = []
    for place in places:
        if not place or not Path(place).is_dir():
            files.append(place)
            continue
        if not (below := sounds_below(Path(place))):
            raise UserError(f"{place} has no sounds")
        files += map(str, below)
    return files
