"""Passages of running prose, for the tasks that learn from it."""

from collections.abc import Sequence
from pathlib import Path

from foveate.data.text.documents import Prose
from foveate.forms.prose import Passages, passages_of
from foveate.tasks.recipe import Recipe


def arrange_prose(prose: Prose, recipe: Recipe) -> Passages:
    """Returns what the form of a recipe reads as one. Raises UserError where there is none."""
    return passages_of(prose, recipe.reads.passages(prose))


def read_prose(paths: Sequence[Path], recipe: Recipe) -> Passages:
    """Returns the passages of files and folders. Raises UserError for what cannot be read."""
    return arrange_prose(Prose.from_paths(paths), recipe)
