"""Pairs: two texts, read together by one encoder, get one of several labels."""

from typing import Any

from foveate.data.text.labelled_pairs import read_labelled_pairs
from foveate.forms.text_pair import PairLabel, PairText
from foveate.tasks.classify import Classifier
from foveate.tasks.recipe import TableExamples
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


class PairClassifier(Classifier):
    """A classifier of two texts."""

    def text_of(self, example: Any) -> str:
        """Words of both, which side they are of not counted."""
        return f"{example.first}\n{example.second}"


TASK = Task(
    name="pair",
    about="Train a BERT that gives two texts, read together, one of several labels: whether the second follows the "
    "first.",
    families=("bert", "deberta"),
    head="pair",
    reads=PairText(),
    writes=PairLabel(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: read_labelled_pairs(paths),
    files="FILE",
    layout="Your own text: a file with label<TAB>first text<TAB>second text on each line; plain or .gz. Scores with "
    "fractions become whole numbers of 0 to 5.",
    examples=TableExamples(batch=2048, validation_examples=1000),
    model="bert-mini",
    training=Training(usual_epochs=5, learning_rate=1e-3, schedule="linear", usual_warmup=100, validate_every=100),
    start=LanguageModelBody(),
    usual_start="minilm",
    unit="pairs",
    skill=lambda: PairClassifier,
)
