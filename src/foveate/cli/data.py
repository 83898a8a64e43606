"""`foveate data`: data and trained weights that can be had by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from foveate.cli.parse import parse
from foveate.data import SOURCES
from foveate.interop.pretrained import PRETRAINED, weights


@dataclass
class Data:
    """List the text that can be had by name. Nothing is fetched before it is used."""


def main(arguments: Sequence[str]) -> None:
    parse(Data, arguments, "data")
    for source in SOURCES.values():
        print(f"{source.name}\n  {source.about}")
        print(f"  for {', '.join(source.tasks)}; {source.size} to fetch, licence {source.licence}")
        if source.languages:
            print(f"  languages: {' '.join(source.languages)}")
        print()
    for name in PRETRAINED:
        found = weights(name)
        print(f"{name}\n  {found.about}")
        print(f"  for foveate run, eval, look; {found.size} to fetch, licence {found.licence}\n")
    print("foveate train TASK NAME, and --from LANGUAGE --to LANGUAGE where there are languages")
