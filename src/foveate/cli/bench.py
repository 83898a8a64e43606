"""`foveate bench NAME ...`: compare, and print a table."""

from collections.abc import Sequence

from foveate.cli.parse import parse
from foveate.console import plain_console, print_table
from foveate.experiments import COMPARISONS, Comparison, compare_seeds, comparison_module, save


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
        print_table(console, one.headings, [[cell.replace("**", "") for cell in row] for row in one.rows], one.title)
    for line in (*comparison.notes, comparison.conditions):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _overview() -> str:
    width = max(map(len, COMPARISONS))
    lines = "\n".join(f"  {name:{width}}  {about}" for name, (_, about) in COMPARISONS.items())
    return f"usage: foveate bench NAME ...\n\n{lines}\n\n`foveate bench NAME --help` explains every option."
