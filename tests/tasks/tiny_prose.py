"""A little prose of two kinds, and the recipes of models that learn it in seconds."""

import random
from pathlib import Path
from typing import Any

from foveate.data import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.tasks.autoencode import Autoencode
from foveate.tasks.examples.prose_text import AutoencodeText, LanguageText
from foveate.tasks.former.recipe import Training
from foveate.tasks.language import Language

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


def training(steps: int, **changes: Any) -> Training:
    settled = {"learning_rate": 1e-2, "schedule": "constant", "warmup": 5, "average": 1, "device": "cpu"}
    return Training(steps=steps, label_smoothing=0.0, **{**settled, **changes})


def language(out: Path, steps: int, model: str = "rnn-conditioned", **text: Any) -> Language:
    sizes = {"embedding": 24, "width": 24, "dropout": 0.0}
    text = {"vocabulary": 90, "batch_tokens": 256, "validation_passages": 20, **text}
    return Language(examples=LanguageText(**text), model=model, out=out, architecture=sizes, training=training(steps))


def autoencode(out: Path, steps: int, model: str = "rnn-autoencoder", **text: Any) -> Autoencode:
    sizes = {"embedding": 24, "width": 48, "dropout": 0.0}
    text = {"vocabulary": 90, "batch_tokens": 256, "validation_passages": 20, **text}
    return Autoencode(
        examples=AutoencodeText(**text), model=model, out=out, architecture=sizes, training=training(steps)
    )
