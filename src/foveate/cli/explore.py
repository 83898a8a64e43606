"""`foveate explore MODEL`: a local page to type into and see where a model looks."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.cli.folders import tell_unfinished
from foveate.cli.parse import parse
from foveate.errors import at_least
from foveate.tasks.viewers import open_beside, open_model
from foveate.viewer.server import Address, Limits, serve


@dataclass
class Explore:
    """Serve a page for this machine's browser: type an input, see where the model looks, zoom in to single weights.

    Nothing that is typed is run, or written anywhere but in the browser's tab, and pages of other sites are refused.
    Ctrl-C ends it.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a model that attends: one that foveate trained, or one of Hugging Face's with model.safetensors."""
    host: str = "127.0.0.1"
    """Address to listen at. Any other than this machine's own lets all who reach it use the model."""
    port: int = 0
    """Port to listen at; 0 takes a free one."""
    beside: Path | None = None
    """A second model for the same inputs: each is looked at by both, with their heads side by side."""
    open: bool = False
    """Open the page in the browser."""
    max_tokens: int = 32768
    """The longest input that is looked at, in tokens (patches of an image, frames of a sound)."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Explore, arguments, "explore")
    at_least(1, "max_tokens", options.max_tokens)
    tell_unfinished(options.folder)
    model = open_model(options.folder, options.device)
    second = None
    if options.beside is not None:
        tell_unfinished(options.beside)
        second = open_beside(options.beside, model, options.device)
    names = model.name if second is None else f"{model.name}\n{second.name}"
    server, limits = Address(options.host, options.port), Limits(tokens=options.max_tokens)

    def say(address: str) -> None:
        print(f"{names}\n{address} (Ctrl-C ends it)", flush=True)

    if serve(model, server, limits, say, options.open, second):
        os._exit(0)  # Python would wait for a model that still runs, or end with an error of torch's
