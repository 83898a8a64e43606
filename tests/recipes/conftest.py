"""Lets the tests of this folder import `words`; and one trained translator for all of them."""

import sys
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))

import words

from foveate.recipes.translate import run
from foveate.recipes.translator import Translator


class Trained(NamedTuple):
    translator: Translator
    folder: Path
    told: str


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A translator that has learned its words; with the text that training printed."""
    torch.manual_seed(0)
    folder, told = tmp_path_factory.mktemp("words") / "run", StringIO()
    recipe = words.recipe(folder, steps=200, schedule="linear", log_every=20)
    return Trained(run(recipe, words.splits(), Console(file=told, width=200)), folder, told.getvalue())
