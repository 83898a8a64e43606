"""`foveate data`: data and trained weights that can be had by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.cli.parse import parse
from foveate.data.sources import SOURCES
from foveate.data.sources.examples import write_examples
from foveate.errors import UserError
from foveate.interop.pretrained import PRETRAINED


@dataclass
class Data:
    """List the data and weights that can be had by name; with NAME and `--out`, write test examples of it as files.

    Nothing is fetched before it is used.
    """

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None
    """Labelled texts, images, sounds or walks by name, of which to write some."""
    out: Path | None = None
    """Folder to write them to, with a table of what is known of each, examples.tsv."""
    count: int = 1
    """Number of examples."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Data, arguments, "data")
    if (options.name is None) != (options.out is None):
        raise UserError(f"to write examples, give {'a name' if options.name is None else '--out FOLDER'} too")
    if options.name is not None and options.out is not None:
        for path in write_examples(options.name, options.out, options.count):
            print(path)
        return
    for source in SOURCES.values():
        print(f"{source.name}\n  {source.about}")
        print(f"  for {', '.join(source.tasks)}; {source.size} to fetch, licence {source.licence}")
        if source.languages:
            print(f"  languages: {' '.join(source.languages)}")
        print()
    for name, trained in PRETRAINED.items():
        print(f"{name}\n  {trained.about}")
        print(f"  for foveate run, eval, look; {trained.size} to fetch, licence {trained.licence}\n")
    print("foveate train TASK NAME, and --from-language and --to where there are languages")
