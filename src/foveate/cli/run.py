"""`foveate run RUN "text"`: use a trained model."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated

import tyro

from foveate import recipes
from foveate.cli.parse import parse
from foveate.contracts import UserError
from foveate.data import read_sentences
from foveate.decoding import Decoding
from foveate.recipes.translator import Prediction, Translator
from foveate.sight import alignments, save

CHUNK = 1000
"""Lines of standard input that are translated together: the most that an answer waits for."""


@dataclass
class Run:
    """Translate text: each argument, or each line of a file or of standard input. One line of output for each."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a trained model."""
    text: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")] = ()
    """Sentences; without any, lines are read from `--file` or standard input."""
    file: Path | None = None
    """File of sentences, one a line; plain or .gz."""
    picture: Path | None = None
    """Also draw where the model looked while it translated the first sentence, into this file (.png, .svg, .pdf)."""
    device: str = "cpu"
    """Where to compute: "cpu", "cuda", "mps", or "auto" for a CUDA GPU if there is one."""
    decoding: Decoding = field(default_factory=Decoding)


def main(arguments: Sequence[str]) -> None:
    asked = parse(Run, arguments, "run")
    if asked.text and asked.file is not None:
        raise UserError(f"both sentences and the file {asked.file} are given; choose one")
    translator = recipes.load(asked.folder, asked.device)
    # The folder knows how its translations are best searched for; flags change that.
    options = parse(Run, arguments, "run", Run(asked.folder, decoding=translator.decoding))
    first, empty, long = None, 0, 0
    for sentences in _chunks(options):
        predictions = translator.translate(sentences, options.decoding)
        for prediction in predictions:
            print("\t".join([prediction.text, *prediction.others]), flush=True)
            empty += not prediction.source.strip()
            first = first or (prediction if prediction.text else None)
        long += len(translator.too_long(sentences))
    if empty:
        print(f"{empty:,} empty lines stay empty", file=sys.stderr)
    if long:
        print(f"{long:,} lines are longer than any the model learned from; they may be poor", file=sys.stderr)
    if options.picture is not None:
        _draw(translator, first, options.picture)


def _chunks(options: Run) -> Iterator[list[str]]:
    """The sentences, as many together as can be translated before the first answer is shown."""
    if options.text:
        sentences: Iterator[str] = iter(options.text)
    else:
        sentences = read_sentences(options.file or sys.stdin.buffer)
    at_once = 1 if not options.text and options.file is None and sys.stdin.isatty() else CHUNK
    while chunk := list(islice(sentences, at_once)):
        yield chunk


def _draw(translator: Translator, prediction: Prediction | None, path: Path) -> None:
    alignment = None if prediction is None else translator.alignment(prediction.source, prediction.text)
    if alignment is None:
        raise UserError(f"no picture to draw into {path}: this model has no attention, or nothing was translated")
    save(alignments([alignment]), path)
    print(f"drew {path}", file=sys.stderr)
