"""Pictures of attention weights: how much each target token looked at each source token."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Picture
from foveate.errors import UserError


class Alignment(NamedTuple):
    """A map of weights, from 0 to 1, and the tokens of its rows and columns as `Tokenizer.pieces` writes them."""

    weights: Float[Tensor, "T S"]
    target: Sequence[str]
    source: Sequence[str]
    title: str = ""


def alignment(weights: Float[Tensor, "T S"], target: Sequence[str], source: Sequence[str], title: str = "") -> Picture:
    """A heatmap with a row for each target token and a column for each source token; see `alignments`."""
    return alignments([Alignment(weights, target, source, title)])


def alignments(maps: Sequence[Alignment], columns: int = 4) -> Picture:
    """Heatmaps on one scale, such as those of several heads or models, up to `columns` of them side by side.

    The figure, one of matplotlib, grows with the tokens. A line joins the pieces of a word, and those after the first,
    which begin with '·', are grey. Tokens run from left to right and from top to bottom in the model's order; a label
    in a script that is written from right to left reads so. Raises UserError if a map and its tokens differ in number.
    """
    from foveate.viewer.heatmaps import drawn

    if not maps:
        raise UserError("there is no map to draw")
    for each in maps:
        _check(each)
    return drawn(maps, columns)


def save(picture: Picture, path: Path) -> None:
    """Write a picture as the ending of `path` says: .png, or .svg or .pdf, which stay sharp at any size.

    Raises UserError on an ending that is not known, and where the disk refuses.
    """
    check_ending(path)
    try:
        picture.savefig(path)
    except OSError as error:
        raise UserError(f"could not write {path}: {error.strerror}") from None


def check_ending(path: Path) -> None:
    """Raise UserError for a path that ends like no picture."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise UserError(f"{path}: cannot write a picture as '{path.suffix}'; known: {', '.join(sorted(known))}")


def _check(each: Alignment) -> None:
    shape, tokens = tuple(each.weights.shape), (len(each.target), len(each.source))
    if shape != tokens or not all(shape):
        raise UserError(
            f"a map of shape {shape} for {tokens[0]} target and {tokens[1]} source tokens; "
            "its rows are the target tokens, its columns the source tokens, of one example and one head"
        )
