"""`foveate bench NAME ...`: compare, and print a table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from rich.table import Table
from rich.text import Text

from foveate.cli.parse import parse
from foveate.console import plain_console
from foveate.experiments import COMPARISONS, Comparison, compare_seeds, comparison_module, save
from foveate.experiments import Table as Rows

BORDER = 3
"""Characters of a column beside its text."""


def main(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return
    name, *rest = arguments
    options = parse(comparison_module(name).OPTIONS, rest, f"bench {name}")
    console = plain_console(stderr=True)
    comparison = compare_seeds(name, options, console)
    show(comparison)
    for path in save(comparison, name, options):
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


def show(comparison: Comparison) -> None:
    """Print the tables of a comparison; what is written to its file is the same in Markdown."""
    console = plain_console()
    console.print(comparison.title, style="bold", markup=False, highlight=False)
    for one in comparison.tables:
        for number, part in enumerate(fitting(one, console.width)):
            console.print(_drawn(part, one.title if not number else "", console.width))
    for line in (*comparison.notes, comparison.conditions):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def fitting(table: Rows, width: int) -> list[Rows]:
    """A table as several that fit into a terminal of this width, each with the first column."""
    widths = narrowest(table)
    groups, used = [[0]], BORDER + widths[0] + 1
    for place, own in enumerate(widths[1:], 1):
        if len(groups[-1]) > 1 and used + BORDER + own > width:
            groups.append([0])
            used = BORDER + widths[0] + 1
        groups[-1].append(place)
        used += BORDER + own
    return [
        replace(
            table,
            headings=[table.headings[place] for place in group],
            rows=[[row[place] for place in group] for row in table.rows],
        )
        for group in groups
    ]


def narrowest(table: Rows) -> list[int]:
    """The least width of each column: that of its longest cell, and of the longest word of its heading."""
    return [
        max(*(len(word) for word in heading.split()), *(len(row[place]) for row in table.rows), 1, 1)
        for place, heading in enumerate(table.headings)
    ]


def _drawn(rows: Rows, title: str, width: int) -> Table:
    table = Table(title=Text(title) if title else None, title_justify="left")
    least = narrowest(rows)
    whole = sum(BORDER + max(own, len(heading)) for own, heading in zip(least, rows.headings, strict=True)) + 1
    for place, heading in enumerate(rows.headings):
        justify: Literal["left", "right"] = "right" if place else "left"
        # Where not all headings fit in one line, each column is as narrow as it can be.
        table.add_column(
            Text(heading), justify=justify, overflow="fold", width=least[place] if place and whole > width else None
        )
    for row in rows.rows:
        table.add_row(*(Text(cell.replace("**", "")) for cell in row))
    return table


def _overview() -> str:
    width = max(map(len, COMPARISONS))
    lines = "\n".join(f"  {name:{width}}  {about}" for name, (_, about) in COMPARISONS.items())
    return f"usage: foveate bench NAME ...\n\n{lines}\n\n`foveate bench NAME --help` explains every option."
