"""Curves over the steps of a training."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from foveate.contracts import Picture


def draw(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, up: str) -> Picture:
    """A line for each name, from its places and values."""
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, (places, values) in curves.items():
        axes.plot(places, values, label=name)
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    if len(curves) > 1:
        axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
