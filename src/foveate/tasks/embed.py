"""Embedding: texts become vectors that are near where the texts mean the same."""

from typing import Any

from foveate.data.text.alike_pairs import read_alike
from foveate.forms.text_vector import PairedText, TextVector
from foveate.tasks.recipe import PairExamples
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.contrastive import ContrastiveTexts


def _embedder() -> Any:
    from foveate.tasks.embedder import Embedder

    return Embedder


TASK = Task(
    name="embed",
    about="Train a model that gives texts vectors, from pairs of texts that mean the same: questions and answers, "
    "sentences and their translations.",
    families=("bert", "deberta"),
    head="vector",
    reads=PairedText(),
    writes=TextVector(),
    objective=ContrastiveTexts(),
    read=lambda paths, recipe: read_alike(paths, recipe.examples.languages),
    files="SRC TGT",
    layout="Your own text: two line-aligned files, or one with source<TAB>target on each line, plain or .gz. Of a "
    "table with labels of inference or scores of likeness, the pairs that mean the same.",
    examples=PairExamples(batch=2048, validation_examples=500),
    model="bert-mini",
    training=Training(epochs=5, learning_rate=1e-3, schedule="linear", warmup=100, validate_every=200, save_every=200),
    architecture={"pooling": "mean"},
    start=LanguageModelBody(),
    usual_start="minilm",
    unit="pairs",
    skill=_embedder,
)
