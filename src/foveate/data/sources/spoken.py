"""Sentences and numbers spoken by the voices of espeak-ng, made on the user's machine."""

import random
import shutil
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.sounds.files import read_sound
from foveate.data.sounds.labelled import LabelledSound, labelled_sounds
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.packages import run
from foveate.data.sources.sentences import random_sentence
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.errors import UserError

PROGRAM = "espeak-ng"

RATE = 8000
"""Sampling rate of the files, in Hz."""

COUNTS = {"train": 4000, "dev": 200, "test": 400}
"""Sentences of each part. None is in two parts."""

ACCENTS = ("en-us", "en-gb")

VOICES = {
    "train": ("m1", "m2", "m3", "m4", "m5", "f1", "f2", "f3", "Alex", "Andrea", "Mike", "steph"),
    "dev": ("m6", "f4", "Lee"),
    "test": ("m7", "m8", "f5", "linda", "David"),
}
"""Variants of the voices. Those of test speak nowhere else."""

SPEEDS, PITCHES = (140, 190), (35, 65)
"""Words per minute and pitch, as espeak-ng counts them, are drawn from these ranges for each sentence."""


class Utterance(NamedTuple):
    """A sentence and how it is spoken."""

    text: str
    accent: str
    variant: str
    speed: int
    pitch: int


def open_spoken(before_fetch: BeforeFetch) -> Splits[Dataset[LabelledSound]]:
    """The sounds to train, validate and test on; made at the first time. Raises UserError without espeak-ng."""
    folder = fetched("spoken", _make, before_fetch)
    with undamaged(folder):
        return Splits(*(labelled_sounds([folder / f"{part}.tsv"], f"spoken.{part}") for part in COUNTS))


def utterances(seed: int = 1) -> dict[str, list[Utterance]]:
    """What is spoken in each part."""
    draw, known = random.Random(seed), set()
    parts: dict[str, list[Utterance]] = {}
    for part, count in COUNTS.items():
        parts[part] = []
        while len(parts[part]) < count:
            text = random_sentence(draw)
            if text not in known:
                known.add(text)
                voice = draw.choice(ACCENTS), draw.choice(VOICES[part])
                parts[part].append(Utterance(text, *voice, draw.randint(*SPEEDS), draw.randint(*PITCHES)))
    return parts


def _make(folder: Path) -> None:
    if not shutil.which(PROGRAM):
        raise UserError(f"spoken is made by the program {PROGRAM}, which this machine lacks: apt-get install {PROGRAM}")
    for part, spoken in utterances().items():
        (folder / part).mkdir()
        files = [folder / part / f"{number}_{one.variant}.wav" for number, one in enumerate(spoken)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(_speak, spoken, files))
        lines = [f"{path.relative_to(folder)}\t{one.text}\n" for path, one in zip(files, spoken, strict=True)]
        (folder / f"{part}.tsv").write_text("".join(lines))


def _speak(one: Utterance, path: Path) -> None:
    """Write the sound of an utterance, at the sampling rate of all files."""
    voice = ["-v", f"{one.accent}+{one.variant}", "-s", str(one.speed), "-p", str(one.pitch)]
    run([PROGRAM, *voice, "-w", str(path), one.text], "speak", path.parent)
    samples = read_sound(path).at(RATE).samples
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(np.round(samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


SOURCE = Source(
    name="spoken",
    tasks=("transcribe",),
    about="4,000 + 600 English sentences and numbers, spoken by voices of espeak-ng, which must be installed",
    size="170 MB, made on this machine by espeak-ng",
    licence="none for the sounds",
    open=open_spoken,
)
