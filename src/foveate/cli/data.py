"""`foveate data`: text that can be had by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from foveate.cli.parse import parse
from foveate.data import SOURCES


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
    print("foveate train TASK NAME, and --from LANGUAGE --to LANGUAGE where there are languages")
