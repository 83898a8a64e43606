"""Pairs of texts with a label each, read together by one encoder: `[CLS] a [SEP] b [SEP]` (Devlin et al. 2019)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from foveate.data.dataset import Dataset
from foveate.data.table import FIRST, SCORED, SECOND
from foveate.data.text.files import Paths
from foveate.data.text.preferences import read_pairs


@dataclass(frozen=True)
class LabelledPair:
    """Two texts, and a label of both together."""

    place: str
    label: str
    first: str
    second: str

    def content(self) -> bytes:
        return f"{self.label}\0{self.first}\0{self.second}".encode()


INFERENCE, UNDECIDED = {"entailment", "contradiction", "neutral"}, {"-", "-1"}
"""The labels of SNLI and MultiNLI, and what stands where those who labelled a pair did not agree."""

STEPS = 5
"""The greatest score of how alike two texts are, as the STS benchmark has them; others end with 1."""


def read_labelled_pairs(paths: Paths) -> Dataset[LabelledPair]:
    """Files of `label<TAB>first<TAB>second` on each line. Scores with fractions become whole numbers of 0 to 5.

    Raises UserError, which names the line, for any other.
    """
    found = read_pairs(paths, LabelledPair, (SCORED, FIRST, SECOND))
    labels = {one.label for one in found}
    if (scale := scale_of(labels)) is not None:
        steps = [replace(one, label=str(round(STEPS * float(one.label) / scale))) for one in found]
        return Dataset(found.name, steps, found.unit, [f"scores as whole numbers of 0 to {STEPS}"], found.lines)
    if not labels & UNDECIDED or not labels & INFERENCE or not labels <= UNDECIDED | INFERENCE:
        return found
    kept = [number for number, one in enumerate(found) if one.label not in UNDECIDED]
    return found.only(kept, f"{len(found) - len(kept):,} without an agreed label left out")


def scale_of(labels: Iterable[str]) -> int | None:
    """The greatest score that there may be, where labels are scores: numbers of which some have a fraction, up to 1 or
    to 5; None where they are not."""
    try:
        numbers = {label: float(label) for label in labels}
    except ValueError:
        return None
    fits = all(0 <= number <= STEPS for number in numbers.values())
    if not fits or all(label.isdigit() for label in numbers):
        return None
    return STEPS if max(numbers.values()) > 1 else 1
