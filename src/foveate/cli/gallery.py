"""`foveate gallery NAME ...`: make pictures of the documentation, and a page of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.cli.parse import parse
from foveate.errors import UserError
from foveate.experiments.gallery import PAGE, ROWS, build_gallery, find_rows


@dataclass
class Gallery:
    """Make pictures of the documentation by their own commands, and a page of them. Without arguments: list them."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME ...")] = ()
    """Pictures to make; without any, all that fit in the budget."""
    out: Path = Path("runs/gallery")
    """Folder for the pictures and their page, index.html."""
    budget: float | None = None
    """Minutes of two cores that may be used. Pictures that do not fit are left out."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Gallery, arguments, "gallery")
    if options.budget is not None and not (math.isfinite(options.budget) and options.budget > 0):
        raise UserError(f"budget is {options.budget:g}, but must be a number of minutes above 0")
    if not options.names and options.budget is None:
        print(_list())
        return
    rows = find_rows(options.names, options.budget)
    failed = build_gallery(rows, options.out, lambda line: print(line, flush=True))
    print(f"wrote {options.out / PAGE}: {len(rows) - len(failed)} of {len(rows)} made")
    if failed:
        raise UserError(f"could not make {', '.join(failed)}")


def _list() -> str:
    width = max(len(row.name) for row in ROWS)
    lines = "\n".join(f"  {row.name:{width}}  {row.minutes:4g} min  {row.shows}" for row in ROWS)
    return (
        f"usage: foveate gallery NAME ... --out FOLDER\n\n{lines}\n\n"
        f"Minutes on two cores, {sum(row.minutes for row in ROWS):g} in all. "
        "`foveate gallery --budget 10` makes what fits in ten."
    )
