"""Which classes are taken for which."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from foveate.contracts import Picture
from foveate.viewer.plain_figure import PlainFigure

NUMBERED = 20
"""Classes up to which each square has its number."""


def draw(counts: Int[np.ndarray, "N N"], names: Sequence[str]) -> Picture:
    """A square for each pair: rows are what examples are, columns what was answered; the colour is the share of the
    row."""
    side = 2.2 + 0.35 * len(names)
    figure = PlainFigure(figsize=(side, side), layout="constrained")
    axes = figure.subplots()
    shares = counts / counts.sum(1, keepdims=True).clip(1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for axis, title in ((axes.xaxis, "answered"), (axes.yaxis, "is")):
        axis.set_ticks(range(len(names)), [*names])
        axis.set_label_text(title)
    axes.tick_params(axis="x", labelrotation=90)
    for row, column in np.argwhere(counts) if len(names) <= NUMBERED else ():
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", color=colour, fontsize=8)
    return figure
