"""Passages of running prose, for the tasks that learn from it."""

from collections.abc import Sequence
from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.text.conversations import holds_conversations, read_conversations
from foveate.data.text.documents import Passage, Prose
from foveate.forms.prose import passages_of
from foveate.tasks.recipe import Recipe


def arrange_prose(prose: Prose, recipe: Recipe) -> Dataset[Passage]:
    """Returns what the form of a recipe reads as one. Raises UserError where there is none."""
    return passages_of(prose, recipe.reads.passages(prose))


def read_prose(paths: Sequence[Path], recipe: Recipe) -> Dataset[Passage]:
    """Returns the passages of files and folders. Raises UserError for what cannot be read."""
    return arrange_prose(Prose.from_paths(paths), recipe)


def read_prose_or_conversations(paths: Sequence[Path], recipe: Recipe) -> Dataset[Passage]:
    """The same, or the conversations of files. Raises UserError for what cannot be read."""
    return read_conversations(paths) if holds_conversations(paths) else read_prose(paths, recipe)
