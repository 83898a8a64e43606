"""Cuts long sounds into parts, at their quietest places."""

import numpy as np

from foveate.data.sounds.files import Waveform

SHORTEST = 0.5
"""Seconds of the shortest limit for parts."""

QUIET = 0.05
"""Seconds of the stretches whose loudness is compared."""


def cut_at_silences(sound: Waveform, longest: float) -> list[Waveform]:
    """The parts of a sound, all of them; each lasts at most `longest` seconds, and all but the last at least half of
    that. Between these limits a part ends in the middle of the quietest stretch."""
    if longest <= 0:
        raise ValueError(f"parts must last longer than 0 seconds, not {longest}")
    parts, samples = [], sound.samples
    most, width = max(1, round(longest * sound.rate)), max(1, round(QUIET * sound.rate))
    while len(samples) > most:
        power = np.cumsum(np.square(samples[most // 2 : most], dtype=np.float64))
        stretches = power[width:] - power[:-width]
        end = most // 2 + int(stretches.argmin()) + width // 2 + 1 if len(stretches) else most
        parts.append(Waveform(samples[:end], sound.rate))
        samples = samples[end:]
    return [*parts, Waveform(samples, sound.rate)]
