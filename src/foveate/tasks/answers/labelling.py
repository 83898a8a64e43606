"""What tasks share that give a whole example, a text or an image, one of several labels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from foveate.errors import UserError
from foveate.forms.checks import unseen_labels
from foveate.metrics.classification import accuracy, macro_f1
from foveate.tasks.protocols import Evaluation


@runtime_checkable
class Decided(Protocol):
    """The decision about one example."""

    label: str

    @property
    def line(self) -> str:
        """What `foveate run` prints for it."""


def check_labels(
    train_name: str, train: Sequence[str], validation_name: str, validation: Sequence[str], example: str
) -> None:
    """Raise UserError if there is nothing to decide, or a label that cannot be learned.

    `train` and `validation` are the labels of the data that these names stand for; an `example` is a "text".
    """
    labels = set(train)
    if len(labels) < 2:
        raise UserError(f"{train_name}: every {example} has the label '{train[0]}'; deciding takes two labels")
    if others := set(validation) - labels:
        raise UserError(f"{validation_name} has the label '{min(others)}', which {train_name} does not have")


def choose_label(labels: Iterable[str], probabilities: Sequence[float]) -> tuple[str, float, dict[str, float]]:
    """The most probable label, its probability, and that of every label."""
    by_label = dict(zip(labels, probabilities, strict=True))
    best = max(by_label, key=by_label.__getitem__)
    return best, by_label[best], by_label


def label_metrics(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """Accuracy and macro F1 of labels, from 0 to 100."""
    return {"accuracy": accuracy(found, right), "macro_f1": macro_f1(found, right)}


def label_baseline(labels: Mapping[str, int], right: Sequence[str]) -> dict[str, dict[str, float]]:
    """The metrics of always giving the label that is most frequent in training; `labels` say how often each is."""
    majority = max(labels, key=labels.__getitem__)
    return {f"always {majority}": label_metrics([majority] * len(right), right)}


def evaluate_labels(
    preset: str, labels: Mapping[str, int], decisions: Sequence[Decided], right: Sequence[str], examples: str
) -> Evaluation:
    """Accuracy and macro F1, beside always giving the label that is most frequent in training.

    `labels` are those of the model, with how often each occurs in training; `examples` are "texts" or "images".
    """
    found = label_metrics([decision.label for decision in decisions], right)
    figures = {preset: found, **label_baseline(labels, right)}
    return Evaluation(
        answers=[decision.line for decision in decisions],
        figures={examples: len(right), "ways": figures},
        headings=["labels by", "accuracy", "macro F1"],
        rows=[[name, *(f"{value:.2f}" for value in row.values())] for name, row in figures.items()],
        notes=[f"{len(right):,} {examples}, {len(labels)} labels", *unseen_labels("labels", right, labels)],
    )
