"""Lets the tests of this folder import `words`; one trained translator and tiny models on disk for all of them."""

import shutil
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
sys.path.insert(0, str(Path(__file__).parent))

import words

from foveate.tasks.learning import learn
from foveate.tasks.translator import Translator

Folders = Callable[[str], Path]


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
    return Trained(learn(recipe, words.splits(), Console(file=told, width=200)), folder, told.getvalue())


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Makes a tiny model of Hugging Face's layout, of a kind that `tiny_folders` knows."""
    tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")
    root = tmp_path_factory.mktemp("models")
    return lambda name: tiny_folders.make(name, root)


@pytest.fixture
def copied(folders: Folders, tmp_path: Path) -> Folders:
    """A folder that a test may damage."""
    return lambda name: shutil.copytree(folders(name), tmp_path / name)
