"""`foveate effect MODEL INPUT`: what a model's answer needs of the heads that look and of the input."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate.cli.folders import check_no_part, tell_unfinished
from foveate.cli.parse import parse
from foveate.errors import UserError, at_least, one_line
from foveate.files import check_place, real_path
from foveate.forms.inputs import add_question, read_input
from foveate.tasks import load
from foveate.tasks.effects import EXACT
from foveate.viewer.document import Effect
from foveate.viewer.effects import KINDS, EffectResult
from foveate.viewer.figures import check_extension, is_page, save_figure
from foveate.viewer.page import save

BAR = 24
"""Characters of the longest bar."""

NAME = 40
"""Characters of the longest name in the table."""


@dataclass
class EffectOptions:
    """Show what a model's answer needs: how much its log-probability changes without each head, each layer and each
    token of the input.

    All effects are estimated by one pass forward and back, and the largest ones are measured: the head is taken out.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a model that attends: one that foveate trained, or one of Hugging Face's with model.safetensors."""
    input: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="INPUT")]
    """What the model reads: a file where one has this name (an image, a .wav file, a text), else this text itself; "-"
    reads standard input."""
    question: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="QUESTION")] = None
    """What is asked about an image, for a model that answers questions."""
    target: str | None = None
    """Another answer than the model's own: a label, a text, or the next token."""
    out: Path | None = None
    """Write a page too (.html): the effects, and where each head looks beside them; a name that ends in .png, .svg or
    .pdf gets the picture."""
    picture: Path | None = None
    """Draw the effects, in the format of its name (.png, .svg, .pdf)."""
    json: bool = False
    """Print everything as one line of JSON."""
    top: int = 8
    """How many heads, layers and tokens to print, the largest effects first."""
    exact: int = EXACT
    """How many of each to take out; the others are estimated."""
    sites: tuple[str, ...] = ()
    """Only modules whose path fits one of these patterns, such as "*cross*" or "transformer.h.0.*"."""
    max_tokens: int = 4096
    """The longest input, in tokens (patches of an image, frames of a sound)."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""


def main(arguments: Sequence[str]) -> None:
    options = parse(EffectOptions, arguments, "effect")
    for name in ("max_tokens", "top"):
        at_least(1, name, getattr(options, name))
    at_least(0, "exact", options.exact)
    for place, flag in ((options.out, "--out"), (options.picture, "--picture")):
        if place is not None:
            check_place(place)
            check_no_part(place, options.folder, flag)
            if real_path(options.input) == real_path(place):
                raise UserError(f"{place} is what the model is to read: name another {flag}")
    if options.picture is not None:
        check_extension(options.picture)
    pictures = [] if options.picture is None else [options.picture]
    if options.out is not None and not is_page(options.out):
        pictures.append(options.out)
    tell_unfinished(options.folder)
    skill = load(options.folder, options.device)
    given = add_question(read_input(options.input, skill.takes), options.question, skill.takes)
    sites = options.sites or None
    found = skill.effect(given, options.target, options.exact, options.max_tokens, sites)
    if options.json:
        print(json.dumps(found.json_values(), ensure_ascii=False))
    else:
        print("\n".join(table(found, options.top)))
    tell = sys.stderr if options.json else sys.stdout
    if options.out is not None and options.out not in pictures:
        save(options.out, found.document())
        print(f"wrote {one_line(options.out)}", file=tell)
    for path in pictures:
        save_figure(found.picture(), path)
        print(f"wrote {one_line(path)}", file=tell)


def table(found: EffectResult, top: int) -> list[str]:
    """The largest effects of each kind, with bars."""
    panel = found.panel
    lines = [f"{one_line(panel.answer)}: {panel.score_name} {panel.value:.3f}, and its change without", ""]
    shown = {kind: [(_short(kind, name), one) for name, one in found.largest(kind, top)] for kind in KINDS}
    names = [name for own in shown.values() for name, _ in own]
    width = max(map(len, names))
    for kind, own in shown.items():
        if not own:
            continue
        most = abs(own[0][1].change)
        lines += [f"{kind}: {len(own)} of {len(found.all(kind)):,}"]
        lines += [f"  {name:{width}} {_number(one)}  {_bar(one.change, most)}".rstrip() for name, one in own]
        lines.append("")
    if any(not one.exact for own in shown.values() for _, one in own):
        lines.append("~ estimated; a larger --exact measures more")
    return lines[:-1] if not lines[-1] else lines


def _short(kind: str, name: str) -> str:
    """A name that fits: of a long path the end counts, which tells heads and layers apart; of a text the beginning."""
    line = one_line(name)
    if len(line) <= NAME:
        return line
    return f"{line[: NAME - 1]}…" if kind == "places" else f"…{line[1 - NAME :]}"


def _number(effect: Effect) -> str:
    return f"{'' if effect.exact else '~'}{effect.change:+.3f}".rjust(9)


def _bar(change: float, most: float) -> str:
    """A bar whose length is the size of an effect: full where the answer loses, light where it gains."""
    return ("█" if change < 0 else "░") * round(BAR * abs(change) / most) if most > 0 else ""
