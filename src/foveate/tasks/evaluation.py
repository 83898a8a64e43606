"""What measuring a model found, as figures and as a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foveate.forms.label_details import DetailTable

HEADINGS = {
    "macro_f1": "macro F1",
    "f1": "F1",
    "bleu": "BLEU",
    "roc_auc": "ROC AUC",
    "tokens": "tokens in place",
    "whole": "whole texts",
}
"""Headings of metrics whose names say less."""


@dataclass
class Evaluation:
    """What measuring a model found."""

    answers: list[str]
    """The answer to each line of the input; empty for a line that is empty or cannot be read. Where nothing is measured
    line by line, as of prose, what was measured instead."""
    figures: dict[str, Any]
    """All that was measured, as JSON values."""
    headings: list[str]
    """Of the table that a user sees: a name, then numbers."""
    rows: list[list[str]]
    tables: list[DetailTable] = field(default_factory=list)
    """Further ones, below the first."""
    notes: list[str] = field(default_factory=list)
    """Lines below the table, such as what makes figures comparable."""


def answers_by_line(answers: Sequence[str], lines: Sequence[int | None]) -> list[str]:
    """The answers to examples as those to the lines that these were read from: see `Dataset.lines`."""
    count = 1 + max((number for number in lines if number is not None), default=-1)
    return ["" if number is None else answers[number] for number in lines] if len(answers) == count else list(answers)


def evaluation_rows(ways: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """The names of all metrics and a row of them for each way to answer."""
    names: Iterable[str] = dict.fromkeys(name for metrics in ways.values() for name in metrics)
    rows = [
        [way, *(f"{metrics[name]:.2f}" if name in metrics else "" for name in names)] for way, metrics in ways.items()
    ]
    return [*map(heading, names)], rows


def heading(metric: str) -> str:
    """What stands above the figures of a metric."""
    return HEADINGS.get(metric, metric.replace("_", " "))
