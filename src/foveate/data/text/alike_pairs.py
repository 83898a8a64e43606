"""Pairs of texts that mean the same, of files that say of each pair whether it does: by labels of natural language
inference (NLI), or by scores of how alike two texts are (STS)."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from foveate.data.table import ALIKE, SOURCE, TARGET, DataTable, Row
from foveate.data.text.files import Paths, as_paths
from foveate.data.text.labelled_pairs import INFERENCE, UNDECIDED, scale_of
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError

SAME = "entailment"
"""The label of a pair whose first text says what the second one does."""

LEAST = 0.8
"""Of the greatest score, the share from which on two texts mean the same."""


LOOKED_AT = 1000
"""Rows after which a table that had no label so far has none."""


class ScoredPair(NamedTuple):
    """Two texts, and how alike people found them."""

    first: str
    second: str
    score: float


def read_alike(paths: Paths, languages: tuple[str, str] | None = None) -> ParallelText:
    """As `ParallelText.from_paths`; of a table whose rows have a label of NLI or a score of STS, the pairs that mean
    the same: entailments, or four fifths of the greatest score and more. Other labels say nothing. Raises UserError for
    labels that are numbers of classes."""
    paths = as_paths(paths)
    if len(paths) != 1 or paths[0].is_dir():
        return ParallelText.from_paths(paths, languages)
    pairs = _LabelledTable(DataTable(paths[0], (SOURCE, TARGET), empty_cells=True, further=ALIKE))
    if not pairs.has_labels:
        return ParallelText.from_paths(paths, languages)
    return ParallelText(paths[0].name, pairs, left_out=lambda: pairs.left_out)


def read_scored(paths: Paths) -> list[ScoredPair]:
    """The pairs of a table with scores of STS, all of them; none of other files."""
    paths = as_paths(paths)
    if len(paths) != 1 or paths[0].is_dir():
        return []
    pairs = _LabelledTable(DataTable(paths[0], (SOURCE, TARGET), empty_cells=True, further=ALIKE))
    return pairs.scored()


class _LabelledTable:
    """The pairs of a table with labels, which is read once; those that are left out are empty."""

    def __init__(self, table: DataTable) -> None:
        self._rows = _rows_with_labels(table)
        labels = {row.origin for row in self._rows if row is not None} - {""}
        self._scale = scale_of(labels) if labels else None
        if self._scale is None and labels and all(label.removeprefix("-").isdigit() for label in labels):
            raise UserError(
                f"{table.path}: the labels are {', '.join(sorted(labels)[:4])}, which do not say which pairs mean the "
                f"same: write {SAME} for these, or scores from 0.0 to 5.0"
            )
        inference = bool(labels & INFERENCE) and labels <= UNDECIDED | INFERENCE
        self.has_labels = inference or self._scale is not None
        self.left_out: Counter[str] = Counter()

    def __call__(self) -> Iterator[tuple[str, str]]:
        self.left_out.clear()
        for row in self._rows:
            if row is None:
                yield "", ""
            elif self._is_alike(row.origin):
                yield row.cells[0], row.cells[1]
            else:
                self.left_out["that do not mean the same"] += 1

    def scored(self) -> list[ScoredPair]:
        """The pairs with their scores, where labels are scores."""
        if self._scale is None:
            return []
        rows = [row for row in self._rows if row is not None and row.origin and all(row.cells)]
        return [ScoredPair(row.cells[0], row.cells[1], float(row.origin)) for row in rows]

    def _is_alike(self, label: str) -> bool:
        return label == SAME if self._scale is None else bool(label) and float(label) >= LEAST * self._scale


def _rows_with_labels(table: DataTable) -> list[Row | None]:
    """All rows of a table with labels; none of one without."""
    rows: list[Row | None] = []
    labelled = False
    for row in table:
        rows.append(row)
        labelled = labelled or (row is not None and bool(row.origin))
        if not labelled and len(rows) == LOOKED_AT:
            return []
    return rows
