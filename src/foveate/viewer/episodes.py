"""Episodes of an agent: what it saw at each step, under its attention, as a figure and as an animation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL.Image
from matplotlib import colormaps
from PIL import ImageDraw

from foveate.contracts import Picture
from foveate.files import written
from foveate.viewer.plain_figure import PlainFigure

MOST_COLUMNS = 6
MOST_STEPS = 24
"""Steps of the longest episode that is drawn as one figure."""

SECONDS = 0.6
"""How long an animation shows each step."""


def draw(views: np.ndarray, weights: np.ndarray, actions: Sequence[str], title: str) -> Picture:
    """A panel for each of the first steps: the view (T, h, w, 3) in 8 bits under the weights (T, rows, columns)."""
    count = min(len(actions), MOST_STEPS)
    columns = min(count, MOST_COLUMNS)
    rows = -(-count // columns)
    figure = PlainFigure(figsize=(max(4, 1.9 * columns), 2.2 * rows + 0.5), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels:
        axes.set_axis_off()
    for number, axes in enumerate(panels[:count]):
        axes.imshow(overlay(views[number], weights[number]))
        axes.set_title(f"{number + 1}. {actions[number]}", fontsize=10)
    return figure


def overlay(view: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The view (h, w, 3) in 8 bits, coloured where the weights of a grid that covers it are large."""
    height, width = view.shape[:2]
    grid = PIL.Image.fromarray((weights / max(weights.max(), 1e-9) * 255).astype(np.uint8))
    share = np.asarray(grid.resize((width, height), PIL.Image.Resampling.NEAREST), np.float32) / 255
    heat = colormaps["inferno"](share)[..., :3] * 255
    alpha = 0.15 + 0.5 * share[..., None]
    return ((1 - alpha) * view + alpha * heat).astype(np.uint8)


def write_gif(
    path: Path,
    levels: Sequence[np.ndarray],
    views: np.ndarray,
    weights: np.ndarray,
    actions: Sequence[str],
    title: str,
) -> None:
    """An animation with a frame for each step: the level (h, w, 3), the view under its weights, and the action."""
    frames = []
    for number, level in enumerate(levels):
        side = level.shape[0]
        view = np.asarray(PIL.Image.fromarray(views[number]).resize((side, side), PIL.Image.Resampling.NEAREST))
        frame = PIL.Image.new("RGB", (level.shape[1] + side + 8, side + 36), "white")
        frame.paste(PIL.Image.fromarray(level), (0, 36))
        frame.paste(PIL.Image.fromarray(overlay(view, weights[number])), (level.shape[1] + 8, 36))
        pen = ImageDraw.Draw(frame)
        pen.text((4, 3), title, fill="black")
        pen.text((4, 19), f"step {number + 1}: {actions[number]}", fill="black")
        frames.append(frame)
    with written(path) as temporary:
        frames[0].save(temporary, save_all=True, append_images=frames[1:], duration=int(1000 * SECONDS), loop=0)
