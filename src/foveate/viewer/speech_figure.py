"""The spectrogram of a sound above the alignment of its transcript."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from foveate.contracts import Picture
from foveate.viewer.plain_figure import PlainFigure

MOST_HEIGHT = 12.0
"""Inches of the alignment of a long text, at most."""


def draw(
    spectrogram: Float32[np.ndarray, "S F"],
    weights: Float32[np.ndarray, "T Z"],
    characters: Sequence[str],
    seconds: float,
    title: str,
    words: Sequence[tuple[str, float, float]] = (),
) -> Picture:
    """A row of `weights` for each of the `characters`; their columns cover the same `seconds` as the spectrogram.

    `words`, with the seconds at which they begin and end, are written over the spectrogram.
    """
    height = min(0.16 * len(characters), MOST_HEIGHT)
    figure = PlainFigure(figsize=(min(12.0, 4 + 2.5 * seconds), 2.6 + height), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, max(1.0, height)])
    above.imshow(
        spectrogram.T, origin="lower", aspect="auto", cmap="magma", extent=(0, seconds, 0, spectrogram.shape[1])
    )
    above.set_ylabel("mel band")
    above.set_title(_shortened(title, round(9 * figure.get_figwidth())))
    for word, start, end in words:
        for axes in (above, below):
            axes.axvspan(start, end, fill=False, edgecolor="white", linewidth=0.8, alpha=0.4)
        place = (start + end) / 2
        above.text(
            place,
            0.97,
            word,
            color="white",
            fontsize=8,
            ha="center",
            va="top",
            rotation=90,
            transform=above.get_xaxis_transform(),
        )
    heat = below.imshow(
        weights,
        aspect="auto",
        cmap="viridis",
        vmin=0,
        vmax=float(weights.max()),
        extent=(0, seconds, len(characters) - 0.5, -0.5),
        interpolation="nearest",
    )
    named = [place for place, one in enumerate(characters) if one]
    below.set_yticks(named, ["␣" if characters[place] == " " else characters[place] for place in named], fontsize=7)
    below.set_xlabel("seconds")
    below.set_ylabel("in the order of writing")
    figure.colorbar(heat, ax=below, label="attention weight")
    return figure


def _shortened(text: str, length: int) -> str:
    """A text of at most this many characters in one line."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
