"""Texts that a tiny classifier understands in seconds: one word of each says whether it is praise."""

import random
from pathlib import Path
from typing import Any

from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import LabelledText
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe

TELLING = {"praise": ["good", "great", "fine"], "blame": ["bad", "poor"]}

OTHERS = ["the", "film", "was", "a", "long", "story", "of", "dogs", "and", "cats"]


def examples(count: int, seed: int) -> list[tuple[str, str]]:
    """(label, text): two to five words that tell nothing, and one that does, anywhere among them."""
    generator, found = random.Random(seed), []
    for _ in range(count):
        label = generator.choice(sorted(TELLING))
        words = generator.choices(OTHERS, k=generator.randint(2, 5))
        words.insert(generator.randint(0, len(words)), generator.choice(TELLING[label]))
        found.append((label, " ".join(words)))
    return found


def splits(train: int = 300) -> Splits[LabelledText]:
    counts = (train, 40, 50)
    return Splits(*(LabelledText.from_pairs(examples(count, count), f"verdicts.{count}") for count in counts))


def recipe(out: Path, steps: int = 60, **changes: Any) -> Recipe:
    """A small attentive classifier; `changes` are settings of any part of the recipe."""
    settings = {
        "batch": 256,
        "max_length": 64,
        "validation_examples": 40,
        "steps": steps,
        "learning_rate": 2e-2,
        "schedule": "constant",
        "warmup": 5,
        "average": 1,
        "validate_every": 1000,
        "save_every": 1000,
        "device": "cpu",
        "architecture": {"width": 16, "embedding": 12, "dropout": 0.0},
        **changes,
    }
    return make_recipe("classify", out=out, **settings)
