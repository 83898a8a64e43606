"""A language that a tiny model learns in seconds: each word has one translation, in the same order."""

import random
from pathlib import Path
from typing import Any

from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.tasks.recipe import Recipe
from foveate.tasks.translate import TASK

WORDS = {
    "red": "rouge",
    "green": "verte",
    "cat": "chat",
    "dog": "chien",
    "apple": "pomme",
    "house": "maison",
    "small": "petit",
    "big": "grand",
    "sun": "soleil",
    "moon": "lune",
    "sea": "mer",
}

SIGNS = dict(zip(WORDS, "🟥🟩🐱🐶🍎🏠🤏🐘☀🌙🌊", strict=True))

SIZES = {"width": 48, "embedding": 32, "dropout": 0.0}
"""Of a recurrent translator."""


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Sentences of 1 to 4 different words, with their translations."""
    generator, found = random.Random(seed), []
    for _ in range(count):
        words = generator.sample(list(WORDS), generator.randint(1, 4))
        found.append((" ".join(words), " ".join(WORDS[word] for word in words)))
    return found


def messages(count: int, seed: int) -> ParallelText:
    """Sentences as messages of 1 to 4 names; their notes are the emoji."""
    drawn = pairs(count, seed)
    notes = [" ".join(SIGNS[word] for word in source.split()) for source, _ in drawn]
    named = [(source.replace(" ", ", "), target.replace(" ", ", ")) for source, target in drawn]
    return ParallelText.from_pairs(named, f"messages.{seed}", notes)


def splits(train: int = 600) -> Splits:
    return Splits(*(ParallelText.from_pairs(pairs(count, count), f"words.{count}") for count in (train, 50, 60)))


def recipe(out: Path, steps: int, **changes: Any) -> Recipe:
    """A small attentive translator; `changes` are fields of any part of the recipe, "model" and "architecture"."""
    settings = {
        "model": "rnn-attentive",
        "architecture": SIZES,
        "vocabulary": 120,
        "batch": 512,
        "validation_examples": 50,
        "learning_rate": 1e-2,
        "schedule": "constant",
        "warmup": 10,
        "validate_every": 1000,
        "save_every": 1000,
        "average": 1,
        "label_smoothing": 0.0,
        "device": "cpu",
    }
    return TASK.recipe(**{**settings, "steps": steps, "out": out, **changes})
