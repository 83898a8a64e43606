"""`foveate eval RUN --data SRC TGT`: measure a trained model."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from foveate import recipes
from foveate.cli.parse import parse
from foveate.contracts import UserError, at_least
from foveate.data import ParallelText, open_source
from foveate.decoding import Decoding
from foveate.recipes.quality import LengthGroup, Quality, quality, quality_by_length
from foveate.recipes.translator import Translator


@dataclass
class Eval:
    """Translate text whose translation is known, and compare: BLEU and chrF, over all and by length of the source."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a trained model."""
    data: tuple[Path, ...] = ()
    """Two line-aligned files, SRC TGT, or one with source<TAB>target on each line; plain or .gz. Without it, the test
    part of the text by name that the model was trained on."""
    groups: int = 4
    """Groups of source lengths to tell apart."""
    lowercase: bool = False
    """Compare in lower case."""
    output: Path | None = None
    """Also write the translations to this file, one a line."""
    json: bool = False
    """Print one JSON object instead of tables."""
    device: str = "cpu"
    """Where to compute: "cpu", "cuda", "mps", or "auto" for a CUDA GPU if there is one."""
    decoding: Decoding = field(default_factory=Decoding)


def main(arguments: Sequence[str]) -> None:
    asked = parse(Eval, arguments, "eval")
    at_least(1, "groups", asked.groups)
    translator = recipes.load(asked.folder, asked.device)
    options = parse(Eval, arguments, "eval", Eval(asked.folder, decoding=translator.decoding))
    if options.output is not None:
        _write(options.output, [], "a")  # what cannot be written is told before the work, not after it
    text = _text(options, translator)
    console = Console(stderr=True)
    console.print(text.report, markup=False, highlight=False)
    sources, references = map(list, zip(*text, strict=True))
    if long := len(translator.too_long(sources)):
        console.print(f"{long:,} of them are longer than any the model learned from")
    found = [""] * len(sources)
    steps = translator.translations(sources, options.decoding)
    for place, prediction in track(
        steps, "translating", len(sources), console=console, disable=not console.is_terminal
    ):
        found[place] = prediction.text
    if options.output is not None:
        _write(options.output, found)
    whole = quality(found, references, options.lowercase)
    groups = quality_by_length(sources, found, references, options.groups, options.lowercase)
    if options.json:
        print(json.dumps({**asdict(whole), "by_length": [asdict(group) for group in groups]}))
    else:
        _show(whole, groups)


def _text(options: Eval, translator: Translator) -> ParallelText:
    if options.data:
        return ParallelText.from_paths(options.data)
    trained_on = translator.description["recipe"]["text"]
    if trained_on["source"] is None:
        raise UserError("this model was trained on files: give --data SRC TGT to measure it on")
    return open_source(trained_on["source"], trained_on["from_language"], trained_on["to_language"]).test


def _write(path: Path, lines: Sequence[str], mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise UserError(f"could not write {path}: {error.strerror}") from None


def _show(whole: Quality, groups: Sequence[LengthGroup]) -> None:
    table = Table()
    for heading in ("words in source", "sentences", "BLEU", "chrF"):
        table.add_column(heading, justify="right")
    for name, part in (*((group.name, group.quality) for group in groups), ("all", whole)):
        table.add_row(name, f"{part.sentences:,}", f"{part.bleu:.1f}", f"{part.chrf:.1f}")
    console = Console()
    console.print(table)
    measured = [whole, *(group.quality for group in groups)]
    for name, signatures in (
        ("BLEU", [part.bleu_signature for part in measured]),
        ("chrF", [part.chrf_signature for part in measured]),
    ):
        for signature in dict.fromkeys(signatures):
            console.print(f"{name}|{signature}", markup=False, highlight=False, soft_wrap=True)
