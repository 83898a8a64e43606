"""Figures of attention weights: heatmaps of target tokens by source tokens, and weights over an image."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Picture
from foveate.errors import UserError
from foveate.files import written
from foveate.viewer.maps import Alignment, WordRow

PAGES = (".html", ".htm")
"""How the names of pages end."""


def plot_alignment(
    weights: Float[Tensor, "T S"], target: Sequence[str], source: Sequence[str], title: str = ""
) -> Picture:
    """A heatmap with a row for each target token and a column for each source token; see `plot_alignments`."""
    return plot_alignments([Alignment(weights, target, source, title)])


def plot_alignments(maps: Sequence[Alignment], columns: int = 4) -> Picture:
    """Heatmaps on one scale, such as those of several heads or models, up to `columns` of them side by side.

    The size of the matplotlib figure grows with the number of tokens. A line joins the pieces of a word; pieces after
    the first one, which begin with '·', are grey. Tokens are in the model's order, from left to right and from top to
    bottom, also in scripts that are written from right to left. Raises UserError if a map and its tokens differ in
    number.
    """
    from foveate.viewer.heatmaps import draw  # imports matplotlib, which takes a while

    if not maps:
        raise UserError("there is no map to draw")
    for each in maps:
        _check(each)
    return draw(maps, columns)


def plot_running_texts(maps: Sequence[Alignment]) -> Picture:
    """The text of the columns of each map, once for each token of its rows, darker where that looked.

    Of a decoder, this is a text that is written step by step. Raises UserError as `plot_alignments`.
    """
    from foveate.viewer.running_text import draw  # imports matplotlib, which takes a while

    if not maps:
        raise UserError("there is no map to draw")
    for each in maps:
        _check(each)
    return draw(maps)


def plot_image_attention(pixels: np.ndarray, weights: np.ndarray, title: str) -> Picture:
    """An image beside the same image with the weights over it.

    `pixels` are (height, width, channels) in 8 bits; `weights` are (rows, columns) of a grid that covers the image.
    """
    from foveate.viewer.overlay import draw  # imports matplotlib, which takes a while

    return draw(pixels, weights, title)


def plot_word_strip(pixels: np.ndarray, words: Sequence[str], maps: Float[Tensor, "T i j"], title: str = "") -> Picture:
    """An image once for each word, sharp and bright where the model looked.

    `pixels` are (height, width, channels) in 8 bits; `maps` are the weights of each word over a grid that covers the
    image.
    """
    from foveate.viewer.strip import draw  # imports matplotlib, which takes a while

    return draw(pixels, words, maps, title)


def plot_word_rows(pixels: np.ndarray, rows: Sequence[WordRow]) -> Picture:
    """The same for several models or heads, a row for each."""
    from foveate.viewer.strip import draw_rows  # imports matplotlib, which takes a while

    return draw_rows(pixels, rows)


def plot_film(frames: np.ndarray, maps: np.ndarray, title: str = "") -> Picture:
    """The frames of a film, sharp and bright where the model looked; as a GIF, one after the other.

    `frames` are (T, height, width, channels) in 8 bits; `maps` (T, i, j) are weights over a grid that covers a frame,
    on one scale for all frames.
    """
    from foveate.viewer.strip import draw_film  # imports matplotlib, which takes a while

    return draw_film(frames, maps, title)


def plot_curves(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, up: str) -> Picture:
    """Lines over the steps of a training: for each name the steps and the values there."""
    from foveate.viewer.curves import draw  # imports matplotlib, which takes a while

    return draw(curves, across, up)


def save_figure(picture: Picture, path: Path) -> None:
    """Write a figure in the format of the file name extension: .png, .svg, .pdf, ...; as .gif, the rows of a
    heatmap, or the words over an image, appear one after the other.

    Raises UserError for an unknown extension, and if the file cannot be written: what was there is then still there.
    """
    check_extension(path)
    drawn = BytesIO()  # matplotlib cannot end a file that the disk refused
    if path.suffix.lower() == ".gif":
        from foveate.viewer.growing import save_growing  # imports matplotlib, which takes a while
        from foveate.viewer.strip import WordStrip
        from foveate.viewer.word_frames import save_words

        if isinstance(picture, WordStrip):
            save_words(picture.panels, drawn)
        else:
            save_growing(picture, drawn)
    else:
        picture.savefig(drawn, format=path.suffix[1:].lower())
    with written(path) as temporary:
        temporary.write_bytes(drawn.getvalue())


def is_page(path: Path) -> bool:
    """Whether a file is a page, by its name; else it is a picture. Raises UserError for one that is neither."""
    if path.suffix.lower() in PAGES:
        return True
    if path.suffix[1:].lower() not in _formats():
        raise UserError(f"{path} must end in .html for a page, or in .png, .svg, .pdf or .gif for a picture")
    return False


def check_extension(path: Path) -> None:
    """Raise UserError unless the path has the extension of a known picture format."""
    known = _formats()
    if path.suffix[1:].lower() not in known:
        raise UserError(f"{path}: cannot write a picture as '{path.suffix}'; known: {', '.join(sorted(known))}")


def _formats() -> set[str]:
    """The formats of pictures."""
    from matplotlib.backend_bases import FigureCanvasBase

    return {*FigureCanvasBase.get_supported_filetypes(), "gif"}


def _check(each: Alignment) -> None:
    shape, tokens = tuple(each.weights.shape), (len(each.target), len(each.source))
    if shape != tokens or not all(shape):
        raise UserError(
            f"a map of shape {shape} for {tokens[0]} target and {tokens[1]} source tokens; "
            "a map has a row for each target token and a column for each source token, for one example and one head"
        )
