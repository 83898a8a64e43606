"""Language models: the next word of running prose, to write it and to go on from a beginning."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate.data.text.documents import Prose
from foveate.forms.language import Continuation, ReadBeginning
from foveate.forms.prose import Passages, passages_of
from foveate.tasks.recipe import Examples, Recipe
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


def _passages(prose: Prose, recipe: Recipe) -> Passages:
    return passages_of(prose, recipe.reads.passages(prose))


def _read(paths: Sequence[Path], recipe: Recipe) -> Passages:
    return _passages(Prose.from_paths(paths), recipe)


def _language_model() -> Any:
    from foveate.tasks.language_model import LanguageModel

    return LanguageModel


TASK = Task(
    name="language",
    about="Train a language model on running prose: to write it, and to go on from a beginning. With a model such as "
    "rnn-conditioned, it is told of each passage what kind of text it is of: the decade of an address, or of your own "
    "files the name.",
    families=("rnn-language", "gpt"),
    head="words",
    reads=ReadBeginning(),
    writes=Continuation(),
    objective=CrossEntropy(),
    read=_read,
    arrange=_passages,
    files="FILE ...",
    layout="Your own prose: plain text files (or .gz) or folders of .txt and .txt.gz files; empty lines part "
    "paragraphs.",
    examples=Examples(batch=2048, validation_examples=200),
    model="rnn-language",
    training=Training(learning_rate=2e-3, usual_warmup=200),
    start=AllWeights(fine_tuned=True),
    skill=_language_model,
)
