"""What prints for people: tables and lines, as wide as the terminal."""

from collections.abc import Sequence
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foveate.errors import printable

BORDER = 3
"""Characters of a column beside its text."""

CELL = 24
"""Characters of a cell that stay on one line, figures for instance; of a name, a third of the width at most."""


def plain_console(**settings: Any) -> Console:
    """A console that prints names as they are. By default, rich draws a train for `:train:`, which may stand in the
    name of a file or a label."""
    return Console(emoji=False, **settings)


def print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table whose first column names the rows, so that each heading and figure can be read: what is too wide
    for the console becomes several tables with the same rows."""
    for number, places in enumerate(fitting(headings, rows, console.width)):
        named = [headings[place] for place in places]
        cells = [[row[place] for place in places] for row in rows]
        console.print(_drawn(named, cells, title if not number else "", console.width))


def fitting(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns of tables that fit into a console of this width, by their places; each has the first."""
    widths = _narrowest(headings, rows, width)
    groups, used = [[0]], BORDER + widths[0] + 1
    for place, own in enumerate(widths[1:], 1):
        if len(groups[-1]) > 1 and used + BORDER + own > width:
            groups.append([0])
            used = BORDER + widths[0] + 1
        groups[-1].append(place)
        used += BORDER + own
    return groups


def _narrowest(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The least width of each column: that of its longest cell, and of the longest word of its heading, within reason:
    a heading may be a path."""
    found = []
    for place, heading in enumerate(headings):
        most = CELL if place else min(CELL, width // 3)
        words = [*heading.split(), *(row[place] for row in rows)]
        found.append(max([min(len(word), most) for word in words], default=1))
    return found


def _drawn(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str, width: int) -> Table:
    table = Table(title=Text(title) if title else None, title_justify="left")
    least = _narrowest(headings, rows, width)
    whole = sum(BORDER + max(own, len(heading)) for own, heading in zip(least, headings, strict=True)) + 1
    for place, heading in enumerate(headings):
        justify: Literal["left", "right"] = "right" if place else "left"
        # Where not all headings fit in one line, each column is as narrow as it can be.
        narrow = least[place] if place and whole > width else None
        table.add_column(
            Text(printable(heading)), justify=justify, overflow="fold", width=narrow, min_width=least[place]
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))  # a label such as [b] is not markup
    return table
