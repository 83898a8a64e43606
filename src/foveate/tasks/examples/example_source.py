"""Which examples a task learns from: a named source, or a user's own files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.errors import UserError, at_least


@dataclass
class ExampleSource:
    """Where examples to learn from come from. A task adds what is chosen about its own kind of data."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Data by name, instead of your own: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own data."""
    validation: tuple[Path, ...] = ()
    """Data to validate on, likewise. Without it, one example in twenty is held out, or more of few data."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if self.source is not None and self.data:
            raise UserError(f"both the source '{self.source}' and files are given; choose one")


@dataclass
class Examples(ExampleSource):
    """Which examples to learn from, and how many make a batch."""

    batch: int = 128
    """Size of a batch, padding included: examples, tokens or frames, whatever the task counts."""
    validation_examples: int = 2000
    """Examples that each validation during training decides about."""

    def check(self) -> None:
        super().check()
        for name in ("batch", "validation_examples"):
            at_least(1, name, getattr(self, name))
