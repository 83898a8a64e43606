"""What `foveate eval --details` says of labels beside the metrics: each class, what is taken for what, how certain the
metric is, how honest probabilities are, and the worst mistakes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from foveate.data.table.several import join
from foveate.errors import one_line
from foveate.files import check_place
from foveate.metrics.classification import ClassQuality, by_class, calibration_error, confusion
from foveate.metrics.several_labels import by_label
from foveate.viewer.figures import check_extension, save_figure

HOLDS = 0.5
"""The probability from which on a label holds, where each has its own."""

NONE = "none"
"""What stands for no label in a picture."""

FEW = 12
"""Classes whose confusions are printed."""

WORST, SHOWN = 10, 60
"""Mistakes that are listed, and characters that are shown of each input."""


@dataclass
class MeasureLabels:
    """How labels are measured."""

    details: bool = False
    """Also say how well each class is found, which classes are confused, how certain the metric is, how far
    probabilities can be trusted, and which mistakes are the most confident ones."""
    picture: Path | None = None
    """File to draw the confusions of classes into, such as confusions.png."""

    @property
    def asked(self) -> bool:
        """Whether anything is asked for beside the metrics."""
        return self.details or self.picture is not None

    def check(self) -> None:
        """Raise UserError for a file that cannot be written."""
        if self.picture is not None:
            check_extension(self.picture)
            check_place(self.picture)


@dataclass
class DetailTable:
    """A table below the metrics."""

    headings: list[str]
    rows: list[list[str]]


@dataclass
class Details:
    """What is said beside the metrics."""

    tables: list[DetailTable] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def quality_table(heading: str, qualities: Mapping[str, ClassQuality]) -> DetailTable:
    """How well each class or label is found."""
    rows = [
        [name, f"{one.precision:.2f}", f"{one.recall:.2f}", f"{one.f1:.2f}", f"{one.count:,}"]
        for name, one in qualities.items()
    ]
    return DetailTable([heading, "precision", "recall", "F1", "examples"], rows)


def _say_calibration(made: Details, probabilities: Sequence[float], hits: Sequence[bool]) -> None:
    error = calibration_error(probabilities, hits)
    made.figures["calibration_error"] = error
    made.lines.append(f"calibration error (ECE) {error:.2f}: how far probabilities are from the share of right ones")


def _say_worst(made: Details, worst: Sequence[tuple[int, str, str, float, str]]) -> None:
    """Each row: the number of an example, what was answered, what is right, the probability and the input."""
    if not worst:
        return
    rows = [
        [str(row + 1), found, right, f"{share:.3f}", one_line(given).replace("\t", " | ")[:SHOWN]]
        for row, found, right, share, given in worst
    ]
    made.tables.append(DetailTable(["example", "answered", "is", "probability", "most confident mistakes"], rows))
    names = ("example", "answered", "is", "probability", "input")
    made.figures["worst"] = [dict(zip(names, (row + 1, *rest), strict=True)) for row, *rest in worst]


@dataclass
class Decided:
    """What was answered, and what is right."""

    found: Sequence[str]
    right: Sequence[str]
    given: Sequence[str] = ()
    """The inputs, where there is one to each answer."""
    confidences: Sequence[float] = ()
    """The probability of each answer, where it is known."""
    examples: Sequence[int] = ()
    """The number of the example of each answer, where an example has several."""

    def details(self) -> Details:
        """Classes, confusions, calibration and mistakes."""
        classes = by_class(self.found, self.right)
        made = Details([quality_table("class", classes)])
        made.figures["classes"] = {name: asdict(one) for name, one in classes.items()}
        names = self.names
        counts = confusion(self.found, self.right, names)
        made.figures["confusions"] = {"classes": names, "counts": counts.tolist()}
        if len(names) <= FEW:
            rows = [[name, *map(str, row)] for name, row in zip(names, counts.tolist(), strict=True)]
            made.tables.append(DetailTable(["is, answered as", *names], rows))
        else:
            made.lines.append(f"{len(names)} classes: --picture FILE draws which ones are confused")
        if self.confidences:
            self._trust(made)
        return made

    def _trust(self, made: Details) -> None:
        hits = [one == other for one, other in zip(self.found, self.right, strict=True)]
        _say_calibration(made, self.confidences, hits)
        wrong = sorted((-share, row) for row, share in enumerate(self.confidences) if not hits[row])[:WORST]
        numbers = self.examples or range(len(hits))
        worst = [(numbers[row], self.found[row], self.right[row], -share, self.given[row]) for share, row in wrong]
        _say_worst(made, worst)

    @property
    def names(self) -> list[str]:
        """All classes that occur, in alphabetical order."""
        return sorted({*self.found, *self.right})

    def draw(self, path: Path) -> None:
        """Draw the confusions into a file."""
        from foveate.viewer.confusions import draw  # imports matplotlib, which takes a while

        save_figure(draw(confusion(self.found, self.right, self.names), self.names), path)


@dataclass
class DecidedSeveral(Decided):
    """Labels of examples that may have several, or none."""

    found: Sequence[Sequence[str]]  # type: ignore[assignment]
    right: Sequence[Sequence[str]]  # type: ignore[assignment]
    probabilities: Sequence[Mapping[str, float]] = ()
    """Those of all labels, of each answer."""

    def details(self) -> Details:
        """How well each label is found, calibration and mistakes."""
        labels = by_label(self.found, self.right)
        made = Details([quality_table("label", labels)])
        made.figures["classes"] = {name: asdict(one) for name, one in labels.items()}
        shares = [share for own in self.probabilities for share in own.values()]
        holds = [name in right for own, right in zip(self.probabilities, self.right, strict=True) for name in own]
        _say_calibration(made, shares, holds)
        worst = sorted(
            (
                (abs((name in right) - share), row, name, share)
                for row, (own, right) in enumerate(zip(self.probabilities, self.right, strict=True))
                for name, share in own.items()
                if (share >= HOLDS) != (name in right)
            ),
            reverse=True,
        )[:WORST]
        rows = [
            (row, f"{'' if share >= HOLDS else 'not '}{name}", join(self.right[row]) or "none", share)
            for _, row, name, share in worst
        ]
        _say_worst(made, [(*row, self.given[row[0]]) for row in rows])
        return made

    def draw(self, path: Path) -> None:
        """Draw into a file how often examples that have one label were given another."""
        from foveate.viewer.confusions import draw  # imports matplotlib, which takes a while

        sides = zip(self.found, self.right, strict=True)
        pairs = [pair for found, right in sides for pair in product(found or (NONE,), right or (NONE,))]
        names = [*sorted({name for pair in pairs for name in pair if name != NONE}), NONE]
        answered, correct = zip(*pairs, strict=True)
        save_figure(draw(confusion(answered, correct, names), names), path)
