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
        print(f"{source.name}\n  {source.about}\n  for {source.task}, {source.size} to fetch, licence {source.licence}")
        print(f"  languages: {' '.join(source.languages)}\n")
    print("foveate train translate NAME --from LANGUAGE --to LANGUAGE")
