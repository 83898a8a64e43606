"""`foveate look MODEL INPUT --out look.html`: see where a model looks while it reads an input."""

import os
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from foveate.cli.folders import check_no_part, tell_unfinished
from foveate.cli.parse import parse
from foveate.contracts import Picture
from foveate.data.sources.hub import is_hub_name
from foveate.errors import UserError, at_least, one_line
from foveate.files import check_place, real_path
from foveate.interop.pretrained import PRETRAINED
from foveate.sight.measured_look import check_of_weights, finished
from foveate.tasks.viewers import Input, ModelViewer, add_question, open_beside, open_model, read_input
from foveate.viewer.beside import place_beside
from foveate.viewer.difference import subtract
from foveate.viewer.document import Document
from foveate.viewer.figures import PAGES, check_extension, is_page, save_figure
from foveate.viewer.given_file import read_weights
from foveate.viewer.head_figure import draw_heads
from foveate.viewer.measures import join_measures
from foveate.viewer.page import save
from foveate.viewer.protocol import LookResult

ShownMeasure = Literal["weights", "without-sinks", "values", "gradients", "relevance", "difference"]
"""The names of `foveate.sight.measured_look.MEASURES`, and the difference of two looks."""


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
    """File to write the page to (.html). A name that ends in .gif gets a moving picture of the words over an image in
    place of the page, and one in .png, .svg or .pdf the picture that --picture draws."""
    beside: str | None = None
    """A second input of the same kind, or the folder of a second model for the same input: the page has both, with
    their heads side by side."""
    picture: Path | None = None
    """Also draw a picture, in the format of its name (.png, .svg, .pdf): one panel for each word, for models that
    describe an image or draw one; else, and with --heads or --beside, the heads of the last module that --sites leaves,
    as one figure."""
    heads: tuple[int, ...] = ()
    """The heads that --picture draws, such as 0 3; without them, their mean."""
    running_text: bool = False
    """Draw the heads of --picture as running text: what is looked at, once for each token that looks, darker where it
    looked. Of a model that writes, this is its text step by step."""
    open: bool = False
    """Also open the page in the browser."""
    measure: Annotated[tuple[ShownMeasure, ...], tyro.conf.arg(metavar="MEASURE ...")] = ("weights",)
    """What the maps show; of several the page has a menu: weights; without-sinks, weights without the keys that most
    queries of a head look at for want of something better, as shares of the rest; values, each weight times the size
    of the value that it weighs; gradients, each weight times its gradient, which says what made the answer likelier; or
    relevance, that of each position for the answer, through all layers. With --beside also difference: what the second
    looks at more than the first, for tokens that stand for each other."""
    sites: tuple[str, ...] = ()
    """Show only modules whose path fits one of these patterns, such as "*cross*" or "transformer.h.0.*"."""
    title: str | None = None
    """What to write above the page and the heads of --picture; without it, how the input begins."""
    max_tokens: int = 4096
    """The longest input that is looked at, in tokens (patches of an image, frames of a sound)."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Look, arguments, "look")
    at_least(1, "max_tokens", options.max_tokens)
    check_place(options.out)
    for read in (options.input, options.beside, options.weights):
        if read is not None and real_path(read) == real_path(options.out):
            raise UserError(f"{options.out} is what the model is to read: name another --out")
    for model in (options.folder, options.beside):
        if model is not None and _is_model(str(model)):
            check_no_part(options.out, Path(model), "--out")
    if options.picture is not None:
        check_extension(options.picture)
        check_place(options.picture)
        if options.measure[0] == "difference":
            raise UserError("--picture draws no difference, which the page shows: name another --measure first")
    elif (options.heads or options.running_text) and options.out.suffix.lower() in (*PAGES, ".gif"):
        flag = "--heads are" if options.heads else "--running-text is"
        raise UserError(f"{flag} drawn by --picture: name a file for it")
    if is_page(options.out):
        _write_page(options)
    elif options.out.suffix.lower() == ".gif":
        _write_words(options)
    else:
        _write_picture(options)
    if options.open:
        webbrowser.open(options.out.resolve().as_uri())


def _write_page(options: Look) -> None:
    """Write the page, and a picture of the words where one is asked for."""
    seen = _looks(options)
    pages = zip(options.measure, seen, strict=True)
    document = join_measures([_page_of(measure, looks) for measure, looks in pages])
    document.title = options.title if options.title is not None else document.title
    for note in document.notes:
        print(note)
    save(options.out, document)
    seen_sites = [panel for panel in document.sites if not panel.rollout and panel.shows == document.sites[0].shows]
    heads, sites = sum(panel.heads for panel in seen_sites), len(seen_sites)
    size = options.out.stat().st_size / 1e6
    heads_of_sites = f"{heads:,} head{'s' * (heads > 1)} at {sites:,} site{'s' * (sites > 1)}"
    print(f"wrote {one_line(options.out)}: {heads_of_sites}, {size:.1f} MB")
    if options.picture is not None:
        save_figure(_picture_of(seen[0], options), options.picture)
        print(f"wrote {options.picture}")


def _write_picture(options: Look) -> None:
    """Write the picture alone."""
    if options.picture is not None:
        raise UserError(f"{options.out} is a picture already: leave out --picture, or name a page (.html) by --out")
    if options.measure[0] == "difference":
        raise UserError("a picture shows no difference: --out with a name that ends in .html writes the page")
    save_figure(_picture_of(_looks(options)[0], options), options.out)
    print(f"wrote {one_line(options.out)}")


def _picture_of(looks: list[LookResult], options: Look) -> Picture:
    """The words over an image, where the model has such a picture and neither heads nor measures are named."""
    chosen = options.heads or options.running_text or options.measure[0] != "weights"
    words = looks[0].picture if len(looks) == 1 and not chosen else None
    drawn = words() if words is not None else None
    return drawn or draw_heads(looks, options.heads, options.title, options.running_text)


def _page_of(measure: str, looks: list[LookResult]) -> Document:
    """The page of one look, of two beside each other, or of their difference."""
    if measure == "difference":
        return subtract(*looks).document()
    return place_beside(*(look.document() for look in looks)) if len(looks) > 1 else looks[0].document()


def _write_words(options: Look) -> None:
    """Write the picture of the words alone."""
    if options.beside is not None or options.weights is not None or options.picture is not None:
        raise UserError("--out with a .gif shows the words of one look: leave out --beside, --weights and --picture")
    if len(options.measure) > 1:
        raise UserError("--out with a .gif shows one measure: name one by --measure")
    ((seen,),) = _looks(options)
    figure = None if seen.picture is None else seen.picture()
    if figure is None:
        raise UserError("there is no picture of the words: --out with another name than .gif writes the page")
    save_figure(figure, options.out)
    print(f"wrote {one_line(options.out)}")


def _looks(options: Look) -> list[list[LookResult]]:
    """What is shown, for each measure: one look, or two beside each other."""
    if options.weights is not None:
        if options.folder is not None or options.beside is not None:
            raise UserError("--weights are shown without a model: leave out MODEL, INPUT and --beside")
        found = read_weights(options.weights)
        return [[_of_file(found, options, measure)] for measure in options.measure]
    if options.folder is None or options.input is None:
        missing = "MODEL and INPUT" if options.folder is None else "INPUT"
        raise UserError(f"Missing from foveate look: {missing}; or --weights FILE in place of both")
    tell_unfinished(options.folder)
    model = open_model(options.folder, options.device)
    given = add_question(read_input(options.input, model.takes), options.question, model.takes)
    both = [(model, given)] if options.beside is None else [(model, given), _beside(options, model, given)]
    return [[_look(options, *one, measure) for one in both] for measure in options.measure]


def _look(options: Look, model: ModelViewer, given: Input, measure: str) -> LookResult:
    if measure == "difference":
        if options.beside is None:
            raise UserError("--measure difference needs --beside: a second input, or a second model")
        measure = "weights"
    return model.look(given, options.max_tokens, options.sites or None, measure)


def _of_file(found: LookResult, options: Look, measure: str) -> LookResult:
    """The maps of a file that an option chooses, as a measure that weights alone determine."""
    check_of_weights(measure, str(options.weights))
    seen = found.only(options.sites) if options.sites else found
    return replace(seen, sight=finished(seen.sight, measure))


def _is_model(beside: str) -> bool:
    return os.path.isdir(beside) or beside in PRETRAINED or is_hub_name(beside)  # a long text is not a path


def _beside(options: Look, model: ModelViewer, given: Input) -> tuple[ModelViewer, Input]:
    """A second input for the same model, or a second model for the same input."""
    assert options.beside is not None
    if not _is_model(options.beside):
        return model, add_question(read_input(options.beside, model.takes), options.question, model.takes)
    tell_unfinished(Path(options.beside))
    return open_beside(Path(options.beside), model, options.device), given
