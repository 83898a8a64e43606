"""Translation: a model writes a sentence in another language."""

import re
from dataclasses import dataclass, replace
from typing import Any

from foveate.data.text.parallel_corpus import ParallelText
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.forms.translation import SourceText, Translation
from foveate.tasks.recipe import PairExamples
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training

LANGUAGE = re.compile("[a-z]{2,3}([_-][A-Za-z]+)?")
"""What codes of languages look like."""


@dataclass(frozen=True)
class PairRun(AllWeights):
    """A run on pairs of texts, in which a language may be mistaken for a folder."""

    examples: tuple[str, ...] = ("tokens", "vocabulary", "shared", "lowercase")
    folders: bool = True
    fine_tuned: bool = True

    def complete(self, recipe: Any) -> None:
        if LANGUAGE.fullmatch(str(recipe.start)) and not recipe.start.exists():
            raise UserError(f"there is no folder {recipe.start} to begin from; of a language, say --from-language")
        super().complete(recipe)
        if recipe.weights.run is None:
            decoding = self._forms(recipe).writes.decoding
            if recipe.recipe.writes.decoding == Decoding():
                recipe.recipe.writes = replace(recipe.recipe.writes, decoding=decoding)

    def training(self, recipe: Any) -> Training | None:
        """A run goes on as it was trained; a folder is adapted at a low rate."""
        return super().training(recipe) if recipe.weights.run is None else None

    def tokenizer(self, recipe: Any) -> None:
        """None: each side has its own."""

    def processor(self, recipe: Any, kind: Any) -> Any:
        return super().processor(recipe, kind) if recipe.weights.run is not None else self._forms(recipe)

    @staticmethod
    def _forms(recipe: Any) -> Any:
        from foveate.tasks.hf.translators import forms_to_train

        return forms_to_train(recipe.weights, recipe.recipe.examples)


def _translator() -> Any:
    from foveate.tasks.translator import Translator

    return Translator


TASK = Task(
    name="translate",
    about="Train a translator on pairs of sentences.",
    families=("rnn-seq2seq", "convolutional-seq2seq", "transformer", "t5"),
    reads=SourceText(),
    writes=Translation(),
    objective=CrossEntropy(label_smoothing=0.1),
    read=lambda paths, recipe: ParallelText.from_paths(paths, recipe.examples.languages),
    files="SRC TGT",
    layout="Your own text: two line-aligned files, or one with source<TAB>target on each line, plain or .gz; or "
    "folders of programs' translations (.mo, .po), such as /usr/share/locale.",
    examples=PairExamples(batch=4096, validation_examples=500),
    model="transformer-tiny",
    start=PairRun(),
    skill=_translator,
)
