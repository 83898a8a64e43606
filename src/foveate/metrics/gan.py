"""How good generated images are: how far they are from real ones, and how different from each other.

N  images    h, w  height and width
"""

from pathlib import Path

import numpy as np
import PIL.Image

from foveate.errors import UserError
from foveate.training import read_rows
from foveate.viewer.figures import plot_curves, save_figure

THUMBNAIL = 7
"""Height and width of the thumbnails whose distribution is compared."""


def to_image(pixels: np.ndarray) -> PIL.Image.Image:
    """The image of pixels (h, w, C) in 8 bits."""
    return PIL.Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def frechet(one: np.ndarray, other: np.ndarray) -> float:
    """The Fréchet distance of thumbnails of two sets of images (N, h, w, C) in 8 bits, as if both were normal.

    (Heusel et al. 2017, https://arxiv.org/abs/1706.08500, who compare features of a network in place of thumbnails.)
    """
    first, second = _thumbnails(one), _thumbnails(other)
    means = first.mean(0) - second.mean(0)
    a, b = np.cov(first, rowvar=False), np.cov(second, rowvar=False)
    # The trace of the root of a b is the sum of the roots of its eigenvalues.
    roots = np.sqrt(np.linalg.eigvals(a @ b).real.clip(0)).sum()
    return float(means @ means + np.trace(a) + np.trace(b) - 2 * roots)


def deviation_share(made: np.ndarray, real: np.ndarray, labels: np.ndarray) -> float:
    """The deviation of generated images from the mean of their class, beside that of real ones, in percent.

    Far below 100, all images of a class are alike.
    """
    sizes = []
    for images in (made, real):
        values = images.reshape(len(images), -1).astype(np.float64)
        inside = [values[labels == label].var(0).sum() for label in np.unique(labels)]
        sizes.append(np.sqrt(np.mean(inside)))
    return 100 * sizes[0] / sizes[1]


def draw_scales(folder: Path, out: Path) -> None:
    """Draw the scales of self-attention over the steps of the training in a run folder.

    Raises UserError where the training noted none.
    """
    file = folder / "metrics.jsonl"
    if not file.is_file():
        raise UserError(f"there is no {file}: the curve is drawn from what the training noted there")
    rows = read_rows(file)
    names = sorted({name for row in rows for name in row if name.startswith("scale_")})
    if not names:
        raise UserError(f"{file} has no scales: this model has no self-attention")
    curves = {
        name.removeprefix("scale_").replace("_attention_", ", block "): (
            [row["step"] for row in rows if name in row],
            [row[name] for row in rows if name in row],
        )
        for name in names
    }
    save_figure(plot_curves(curves, "step", "scale of self-attention"), out)


def _thumbnails(images: np.ndarray) -> np.ndarray:
    """The images scaled down, in numbers from 0 to 1, (N, D)."""
    small = [to_image(one).resize((THUMBNAIL, THUMBNAIL), PIL.Image.Resampling.BOX) for one in images]
    return np.stack([np.asarray(one, np.float64).reshape(-1) / 255 for one in small])
