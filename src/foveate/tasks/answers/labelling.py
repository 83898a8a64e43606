"""What tasks share that give a whole example, a text or an image, one of several labels."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from foveate.forms.checks import unseen_labels
from foveate.forms.label import label_baseline, label_metrics
from foveate.tasks.protocols import Evaluation


@runtime_checkable
class Decided(Protocol):
    """The decision about one example."""

    label: str

    @property
    def line(self) -> str:
        """What `foveate run` prints for it."""


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
