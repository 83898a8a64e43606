"""`foveate look MODEL INPUT --out look.html`: see where a model looks while it reads an input."""

import os
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.cli.folders import check_no_part, tell_unfinished
from foveate.cli.parse import parse
from foveate.data.sources.hub import is_hub_name
from foveate.errors import UserError, at_least, one_line
from foveate.files import check_place, real_path
from foveate.interop.pretrained import PRETRAINED
from foveate.tasks.viewers import Input, ModelViewer, add_question, open_beside, open_model, read_input
from foveate.viewer.beside import place_beside
from foveate.viewer.figures import check_extension, save_figure
from foveate.viewer.given_file import read_weights
from foveate.viewer.page import save
from foveate.viewer.protocol import LookResult


@dataclass
class Look:
    """Write one self-contained page that shows where a model looks, in every layer and head, while it reads an input.

    Weights that another program wrote to a file are shown the same way, by --weights FILE.
    A model that writes (a translator, T5, Whisper) writes first, then is looked at while it reads input and output at
    once.
    """

    folder: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")] = None
    """Folder of a model that attends: one that foveate trained, or one of Hugging Face's with model.safetensors."""
    input: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="INPUT")] = None
    """What the model reads: a file where one has this name (an image, a .wav file, a text), else this text itself; "-"
    reads standard input. For a model without a tokenizer: token ids, such as "5 17 9"."""
    question: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="QUESTION")] = None
    """What is asked about an image, for a model that answers questions."""
    weights: Path | None = None
    """A file of weights that another program wrote (.npz or .safetensors), in place of a model and its input."""
    out: Path = Path("look.html")
    """File to write the page to."""
    beside: str | None = None
    """A second input of the same kind, or the folder of a second model for the same input: the page has both, with
    their heads side by side."""
    picture: Path | None = None
    """Also draw a picture with one panel for each word, in the format of its name (.png, .svg, .pdf): for models that
    describe an image or draw one."""
    open: bool = False
    """Also open the page in the browser."""
    without_sinks: bool = False
    """Leave out the keys that most queries of a head look at for want of something better, such as the first word:
    the maps are shares of the rest."""
    sites: tuple[str, ...] = ()
    """Show only modules whose path fits one of these patterns, such as "*cross*" or "transformer.h.0.*"."""
    title: str | None = None
    """What to write above the page; without it, how the input begins."""
    max_tokens: int = 4096
    """The longest input that is looked at, in tokens (patches of an image, frames of a sound)."""
    device: str = "cpu"
    """Where to compute: "cpu", "cuda", "mps", or "auto" for a CUDA GPU if there is one."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Look, arguments, "look")
    at_least(1, "max_tokens", options.max_tokens)
    check_place(options.out)
    for read in (options.input, options.beside, options.weights):
        if read is not None and real_path(read) == real_path(options.out):
            raise UserError(f"{options.out} is what the model is to read: name another --out")
    if options.picture is not None:
        check_extension(options.picture)
        check_place(options.picture)
    seen = [each.without_sinks() if options.without_sinks else each for each in _looks(options)]
    document = seen[0].document()
    if len(seen) > 1:
        document = place_beside(document, seen[1].document())
    document.title = options.title if options.title is not None else document.title
    for note in document.notes:
        print(note)
    save(options.out, document)
    seen_sites = [panel for panel in document.sites if not panel.rollout]
    heads, sites = sum(panel.heads for panel in seen_sites), len(seen_sites)
    size = options.out.stat().st_size / 1e6
    heads_of_sites = f"{heads:,} head{'s' * (heads > 1)} at {sites:,} site{'s' * (sites > 1)}"
    print(f"wrote {one_line(options.out)}: {heads_of_sites}, {size:.1f} MB")
    if options.picture is not None and seen[0].picture is not None and (figure := seen[0].picture()) is not None:
        save_figure(figure, options.picture)
        print(f"wrote {options.picture}")
    if options.open:
        webbrowser.open(options.out.resolve().as_uri())


def _looks(options: Look) -> list[LookResult]:
    """What is shown: one look, or two beside each other."""
    if options.weights is not None:
        if options.folder is not None or options.beside is not None or options.picture is not None:
            raise UserError("--weights are shown without a model: leave out MODEL, INPUT, --beside and --picture")
        found = read_weights(options.weights)
        return [found.only(options.sites) if options.sites else found]
    if options.folder is None or options.input is None:
        missing = "MODEL and INPUT" if options.folder is None else "INPUT"
        raise UserError(f"Missing from foveate look: {missing}; or --weights FILE in place of both")
    check_no_part(options.out, options.folder, "--out")
    if options.beside is not None and _is_model(options.beside):
        check_no_part(options.out, Path(options.beside), "--out")
    tell_unfinished(options.folder)
    model = open_model(options.folder, options.device)
    given = add_question(read_input(options.input, model.takes), options.question, model.takes)
    seen = model.look(given, options.max_tokens, options.sites or None)
    if options.picture is not None and seen.picture is None:
        raise UserError(f"{model.name} has no picture of its words: leave out --picture")
    return [seen] if options.beside is None else [seen, _look_beside(options, model, given)]


def _is_model(beside: str) -> bool:
    return os.path.isdir(beside) or beside in PRETRAINED or is_hub_name(beside)  # a long text is not a path


def _look_beside(options: Look, model: ModelViewer, given: Input) -> LookResult:
    """The look at a second input, or at the same input by a second model."""
    assert options.beside is not None
    if not _is_model(options.beside):
        second = add_question(read_input(options.beside, model.takes), options.question, model.takes)
        return model.look(second, options.max_tokens, options.sites or None)
    tell_unfinished(Path(options.beside))
    other = open_beside(Path(options.beside), model, options.device)
    return other.look(given, options.max_tokens, options.sites or None)
