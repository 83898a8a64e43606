"""Translators that have learned a little, to be written for other libraries."""

import itertools
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

import foveate
from foveate.tasks.learning import learn

TEXTS = ["the keeper lit", "lamp up the", "up"]

SIZES = {"width": 22, "heads": 2, "feedforward": 31, "encoder_layers": 2, "decoder_layers": 3, "norm": "pre"}


def trained(folder: Path, model: str = "transformer-tiny", shared: bool = True, **architecture: Any) -> Path:
    """A translator that has learned a little."""
    words = ["the", "keeper", "lit", "lamp", "up"]
    data = folder / "pairs.tsv"
    data.write_text("".join(f"{a} {b} {c}\t{c} {a} {b}\n" for a, b, c in itertools.permutations(words, 3)))
    settings = {"steps": 80, "validate_every": 80, "save_every": 80, "average": 1, "warmup": 5, "learning_rate": 5e-3}
    recipe = foveate.recipe(
        "translate",
        data=data,
        validation=data,
        validation_examples=4,
        out=folder / "run",
        max_length=30,
        batch=400,
        vocabulary=60,
        shared=shared,
        model=model,
        architecture=architecture,
        **settings,
    )
    learn(recipe, console=Console(file=StringIO()))
    return folder / "run"
