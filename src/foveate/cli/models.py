"""`foveate models`: what can be trained."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from foveate import models
from foveate.cli.parse import parse


@dataclass
class Models:
    """List the presets of all families, with their parameters."""

    vocabulary: int = 8000
    """Vocabulary of source and of target that parameters are counted with."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Models, arguments, "models")
    table = Table()
    table.add_column("preset", no_wrap=True)
    table.add_column("parameters", justify="right")
    table.add_column("what it is")
    for preset in models.presets().values():
        model = models.create(preset.name, device="meta", src_vocab=options.vocabulary, tgt_vocab=options.vocabulary)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        table.add_row(preset.name, f"{parameters:,}", preset.summary)
    Console().print(table)
    print(
        f"counted with {options.vocabulary:,} subwords; `foveate train translate --model PRESET --help` shows all sizes"
    )
