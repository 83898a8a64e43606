"""What tasks share that give a whole example, a text or an image, one of several labels."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from foveate.data import LabelledText
from foveate.data.images import LabelledImages
from foveate.errors import UserError
from foveate.recipes.measures import accuracy, macro_f1
from foveate.recipes.trained import Evaluation, unlearned

Labelled: TypeAlias = LabelledText | LabelledImages


@runtime_checkable
class Decided(Protocol):
    """The decision about one example."""

    label: str

    @property
    def line(self) -> str:
        """What `foveate run` prints for it."""


def check_labels(learn: Labelled, check: Labelled, example: str) -> None:
    """Raise UserError if there is nothing to decide, or a label that cannot be learned; an `example` is a "text"."""
    labels = learn.check().labels
    if len(labels) < 2:
        raise UserError(
            f"{learn.name}: every {example} has the label '{next(iter(labels))}'; deciding takes two labels"
        )
    if others := check.check().labels.keys() - labels.keys():
        raise UserError(f"{check.name} has the label '{min(others)}', which {learn.name} does not have")


def check_label_count(file: Path, labels: Mapping[str, int], classes: int) -> None:
    """Raise UserError if a file of labels does not fit the model beside it."""
    if len(labels) != classes:
        raise UserError(
            f"{file} has {len(labels)} labels, but the model decides between {classes}: "
            f"probably they are of two different models"
        )


def choose_label(labels: Iterable[str], probabilities: Sequence[float]) -> tuple[str, float, dict[str, float]]:
    """The most probable label, its probability, and that of every label."""
    by_label = dict(zip(labels, probabilities, strict=True))
    best = max(by_label, key=by_label.__getitem__)
    return best, by_label[best], by_label


def evaluate_labels(
    preset: str, labels: Mapping[str, int], decisions: Sequence[Decided], right: Sequence[str], examples: str
) -> Evaluation:
    """Accuracy and macro F1, beside always giving the label that is most frequent in training.

    `labels` are those of the model, with how often each occurs in training; `examples` are "texts" or "images".
    """
    majority = max(labels, key=labels.__getitem__)
    ways = {
        preset: [decision.label for decision in decisions],
        f"always {majority}": [majority] * len(right),
    }
    figures = {
        name: {"accuracy": accuracy(found, right), "macro_f1": macro_f1(found, right)} for name, found in ways.items()
    }
    return Evaluation(
        answers=[decision.line for decision in decisions],
        figures={examples: len(right), "ways": figures},
        headings=["labels by", "accuracy", "macro F1"],
        rows=[[name, *(f"{value:.2f}" for value in row.values())] for name, row in figures.items()],
        notes=[f"{len(right):,} {examples}, {len(labels)} labels", *unlearned("labels", right, labels)],
    )
