"""What tasks share that are given sound files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate.data.sounds.filter_banks import RATE, FilterBanks
from foveate.data.sounds.labelled import sounds_below
from foveate.data.sounds.spectrograms import LogMel
from foveate.errors import UserError
from foveate.interop.layout import ConfigReader
from foveate.interop.preprocessors import OF_SOUNDS, read_preprocessor

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


def read_sound_settings(folder: Path) -> ConfigReader:
    """What a public folder says of how sounds are read; nothing where there is no such file."""
    values, where = read_preprocessor(folder, OF_SOUNDS)
    return ConfigReader(values or {}, where)


def read_banks(folder: Path, config: Any) -> FilterBanks:
    """The filter banks of a folder, whose model has this config. Raises UserError for what foveate does not do."""
    read, usual = read_sound_settings(folder), FilterBanks()
    read.require(sampling_rate=RATE, num_mel_bins=config.bands, max_length=config.frames)
    if not read.get("do_normalize", True):
        return FilterBanks(config.bands, 0.0, 0.5)
    return FilterBanks(config.bands, read.number("mean", usual.mean), read.number("std", usual.spread))
