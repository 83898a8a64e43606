"""One comparison with several seeds: each figure becomes a mean with the half of its 95 % interval."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from foveate.experiments.comparison import Comparison, Table
from foveate.metrics.resampling import over_seeds

_FIGURE = re.compile(
    r"\**(?P<number>[+-]?[\d,]+(?:\.(?P<digits>\d+))?(?P<scientific>e[+-]?\d+)?)(?P<after>(?: ?%)?\**)"
)


def mean_of_seeds(found: Sequence[Comparison], seeds: Sequence[int]) -> Comparison:
    """Comparisons that differ in their seeds alone as one; pictures are those of the first."""
    note = (
        f"Means of the seeds {', '.join(map(str, seeds))}, each ± half of its 95 % interval (Student's t); equal "
        f"figures stand alone. Pictures are of seed {seeds[0]}."
    )
    tables = [_mean_table(list(parts)) for parts in zip(*(one.tables for one in found), strict=True)]
    raw = {f"seed {seed}": one.raw for seed, one in zip(seeds, found, strict=True)}
    return replace(found[0], tables=tables, raw=raw, notes=[note, *found[0].notes])


def _mean_table(tables: Sequence[Table]) -> Table:
    """The mean of tables. Rows are told by their first cell, and of rows with the same one by their order; a row that
    another seed lacks is that of the others."""
    named = [_by_name(table.rows) for table in tables]
    rows: list[Sequence[str]] = []
    for name, first in named[0].items():
        alike = [own[name] for own in named if name in own]
        rows.append([first[0], *(mean_cell([row[place] for row in alike]) for place in range(1, len(first)))])
    return replace(tables[0], rows=rows)


def _by_name(rows: Sequence[Sequence[str]]) -> dict[tuple[str, int], Sequence[str]]:
    seen: Counter[str] = Counter()
    found = {}
    for row in rows:
        found[row[0], seen[row[0]]] = row
        seen[row[0]] += 1
    return found


def mean_cell(cells: Sequence[str]) -> str:
    """The mean of cells that are figures, with as many digits as they have; what differs otherwise stands side by
    side."""
    if len({*cells}) == 1:
        return cells[0]
    found = [match for cell in cells if (match := _FIGURE.fullmatch(cell))]
    if len(found) != len(cells):
        return " / ".join(dict.fromkeys(cells))
    digits = max(len(one["digits"] or "") for one in found)
    form = f".{digits}e" if any(one["scientific"] for one in found) else f",.{digits}f"
    mean = over_seeds([float(one["number"].replace(",", "")) for one in found])
    after = found[0]["after"].strip("*")
    return f"{mean.value:{form}} ± {mean.value - mean.low:{form}}{after}"
