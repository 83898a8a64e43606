"""A little prose of two kinds, and the recipes of models that learn it in seconds."""

import random
from pathlib import Path
from typing import Any

from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.tasks.autoencode import TASK as AUTOENCODE
from foveate.tasks.language import TASK as LANGUAGE
from foveate.tasks.recipe import Recipe

SAYINGS = {
    "sea": ("The whale", "The ship", "A sailor"),
    "land": ("The cow", "The cart", "A farmer"),
}
"""Who acts, by the kind of text."""

DEEDS = ("rests now.", "comes home.", "is lost again.", "sings a song.")


def prose(count: int, seed: int) -> Prose:
    """Paragraphs of 1 to 3 sentences, of the two kinds in turn."""
    generator, paragraphs = random.Random(seed), []
    for number in range(count):
        kind = ("sea", "land")[number % 2]
        said = [f"{generator.choice(SAYINGS[kind])} {generator.choice(DEEDS)}" for _ in range(generator.randint(1, 3))]
        paragraphs.append(Paragraph(f"{kind} {number}", kind, " ".join(said)))
    return Prose.from_paragraphs(paragraphs, f"prose.{count}")


def splits() -> Splits[Prose]:
    return Splits(prose(300, 1), prose(31, 2), prose(37, 3))


def write_files(folder: Path) -> list[Path]:
    """A file of each kind."""
    paths = [folder / "sea.txt", folder / "land.txt"]
    for path in paths:
        found = [paragraph.text for paragraph in prose(400, 1) if paragraph.condition == path.stem]
        path.write_text("\n\n".join(found) + "\n", encoding="utf-8")
    return paths


SETTINGS = {"learning_rate": 1e-2, "schedule": "constant", "warmup": 5, "average": 1, "device": "cpu"}
"""How tiny models are trained."""


def language(out: Path, steps: int, model: str = "rnn-conditioned", **changes: Any) -> Recipe:
    sizes = {"embedding": 24, "width": 24, "dropout": 0.0}
    text = {"vocabulary": 90, "batch": 256, "validation_examples": 20}
    settings = {**SETTINGS, **text, "model": model, "architecture": sizes, **changes}
    return LANGUAGE.recipe(steps=steps, out=out, **settings)


def autoencode(out: Path, steps: int, model: str = "rnn-autoencoder", **changes: Any) -> Recipe:
    sizes = {"embedding": 24, "width": 48, "dropout": 0.0}
    text = {"vocabulary": 90, "batch": 256, "validation_examples": 20}
    settings = {**SETTINGS, **text, "model": model, "architecture": sizes, **changes}
    return AUTOENCODE.recipe(steps=steps, out=out, **settings)
