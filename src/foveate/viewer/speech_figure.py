"""The spectrogram of a sound above the alignment of its transcript."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32
from matplotlib.figure import Figure

from foveate.contracts import Picture


def draw(
    spectrogram: Float32[np.ndarray, "S F"],
    weights: Float32[np.ndarray, "T Z"],
    characters: Sequence[str],
    seconds: float,
    title: str,
) -> Picture:
    """A row of `weights` for each of the `characters`; their columns cover the same `seconds` as the spectrogram."""
    height = 0.16 * len(characters)
    figure = Figure(figsize=(min(12.0, 4 + 2.5 * seconds), 2.6 + height), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, max(1.0, height)])
    above.imshow(
        spectrogram.T, origin="lower", aspect="auto", cmap="magma", extent=(0, seconds, 0, spectrogram.shape[1])
    )
    above.set_ylabel("mel band")
    above.set_title(title)
    heat = below.imshow(
        weights,
        aspect="auto",
        cmap="viridis",
        vmin=0,
        vmax=1,
        extent=(0, seconds, len(characters) - 0.5, -0.5),
        interpolation="nearest",
    )
    below.set_yticks(range(len(characters)), ["␣" if one == " " else one for one in characters], fontsize=7)
    below.set_xlabel("seconds")
    below.set_ylabel("characters, in the order of writing")
    figure.colorbar(heat, ax=below, label="attention weight")
    return figure
