"""`foveate bench NAME ...`: compare, and print a table."""

from collections.abc import Sequence

from rich.console import Console

from foveate.cli.parse import parse
from foveate.experiments import COMPARISONS, compare, comparison_module, save


def main(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return
    name, *rest = arguments
    options = parse(comparison_module(name).OPTIONS, rest, f"bench {name}")
    console = Console(stderr=True)
    comparison = compare(name, options, console)
    print(comparison.markdown())
    for path in save(comparison, name, options):
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _overview() -> str:
    width = max(map(len, COMPARISONS))
    lines = "\n".join(f"  {name:{width}}  {about}" for name, (_, about) in COMPARISONS.items())
    return f"usage: foveate bench NAME ...\n\n{lines}\n\n`foveate bench NAME --help` explains every option."
