"""Texts that a tiny classifier understands in seconds: one word of each says whether it is praise."""

import random
from pathlib import Path
from typing import Any

from foveate.data import LabelledText, Splits
from foveate.tasks.classify import Classify, Text
from foveate.tasks.former.recipe import Training

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


def recipe(out: Path, steps: int = 60, **changes: Any) -> Classify:
    """A small attentive classifier; `changes` are fields of any part of the recipe, "model" and "architecture"."""
    text = {"batch_tokens": 256, "max_length": 64, "validation_texts": 40}
    training = {
        "steps": steps,
        "learning_rate": 2e-2,
        "schedule": "constant",
        "warmup": 5,
        "average": 1,
        "validate_every": 1000,
        "save_every": 1000,
        "label_smoothing": 0.0,
        "device": "cpu",
    }
    for name in list(changes):
        for part, kind in ((text, Text), (training, Training)):
            if name in kind.__dataclass_fields__:
                part[name] = changes.pop(name)
    settled = {"architecture": {"width": 16, "embedding": 12, "dropout": 0.0}, **changes}
    return Classify(examples=Text(**text), training=Training(**training), out=out, **settled)
