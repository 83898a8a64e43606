"""Sounds for tests: letters as tones of 0.15 s, one after the other, with a little noise."""

from pathlib import Path

import numpy as np
import soundfile

RATE = 8000
HERTZ = {"a": 300, "b": 900, "c": 2100}


def speak(text: str, generator: np.random.Generator) -> np.ndarray:
    """The sound of a text of the letters a, b and c; spaces are pauses."""
    times = np.arange(round(0.15 * RATE)) / RATE
    parts = [np.sin(2 * np.pi * HERTZ[one] * times) if one in HERTZ else 0 * times for one in text]
    sound = 0.3 * np.concatenate([times[:400] * 0, *parts, times[:400] * 0])
    return sound + generator.normal(0, 0.01, len(sound))


def write_table(folder: Path, name: str, texts: list[str], seed: int) -> Path:
    """Sounds of the texts and their table."""
    generator, lines = np.random.default_rng(seed), []
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        soundfile.write(folder / f"{name}{number}.wav", speak(text, generator), RATE)
        lines.append(f"{name}{number}.wav\t{text}")
    (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder / f"{name}.tsv"


def random_texts(count: int, seed: int, longest: int = 4) -> list[str]:
    """Texts of one to `longest` letters, no letter twice in a row."""
    generator, texts = np.random.default_rng(seed), []
    for _ in range(count):
        text = ""
        for _ in range(generator.integers(1, longest + 1)):
            text += str(generator.choice([one for one in HERTZ if one not in text[-1:]]))
        texts.append(text)
    return texts
