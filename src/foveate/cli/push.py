"""`foveate push RUN hub:org/name`: put a trained model on the Hugging Face hub."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.cli.parse import parse
from foveate.tasks.push import push


@dataclass
class Push:
    """Put a trained model into a repository of the Hugging Face hub. `hf auth login` logs in before."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a training that has ended."""
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """The repository, such as hub:me/my-translator; it is made where there is none."""
    private: bool = False
    """Make a new repository that only its owner can see."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Push, arguments, "push")
    files = push(options.folder, options.name, options.private)
    print(f"pushed {', '.join(files)} to {options.name}; try: foveate run {options.name}")
