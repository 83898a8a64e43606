"""Distorts images of words as photographs do: places, light and what a camera keeps.

    warp          turned, sheared, seen from the side, bent, stretched
    texture       smooth noise of several sizes
    slope         light that falls from one side
    photograph    shaken, blurred, small, noisy, compressed
    distorted     all of them, for a photograph that a model is trained on again and again

h, w height and width in pixels
"""

from io import BytesIO
from itertools import pairwise

import numpy as np
import PIL.Image
from PIL import ImageFilter

Meshes = list[tuple[tuple[int, int, int, int], tuple[float, ...]]]
"""Boxes of the new image, and the corners in the old one that each shows."""

LOWEST = 14
"""Height in pixels of the smallest images."""


def distorted(image: PIL.Image.Image, generator: np.random.Generator) -> PIL.Image.Image:
    """Another image of a word: a grey image, warped, cut out anew, in other light, by a poorer camera."""
    height = image.height
    margin = max(height // 3, 3)
    padded = PIL.Image.fromarray(np.pad(np.asarray(image), margin, "edge"))
    shown = padded.transform(*warp(padded.size, 0.6 * height, generator))
    off = margin - generator.uniform(-0.06, 0.14, 4) * height
    wide = shown.width / padded.width
    box = off[0] * wide, off[1], shown.width - off[2] * wide, shown.height - off[3]
    values = np.asarray(shown.crop(tuple(round(place) for place in box)), np.float32)
    values = 128 + (values - 128) * generator.uniform(0.5, 1.2)
    if generator.random() < 0.5:
        values = values + slope(values.shape, generator) * generator.uniform(0, 0.5) * values.std()
    if generator.random() < 0.5:
        values = values + texture(values.shape, generator) * generator.uniform(0, 0.5) * values.std()
    return photograph(values, max(LOWEST, round(0.6 * height)), generator)


def warp(
    size: tuple[int, int], letters: float, generator: np.random.Generator
) -> tuple[tuple[int, int], PIL.Image.Transform, Meshes, PIL.Image.Resampling]:
    """The arguments of PIL's `transform`: a turn, a shear, a perspective, a bent baseline and a stretch, in strips.

    `size` is that of the image; `letters` is the height of its letters.
    """
    width, height = size
    turn, shear = generator.normal(0, 0.04), generator.normal(0, 0.12)
    nearer = generator.normal(0, 0.12) if generator.random() < 0.4 else 0.0
    bend = generator.normal(0, 0.35) * letters if generator.random() < 0.15 else 0.0
    wide = max(int(width * np.exp(generator.normal(0, 0.22))), 8)
    edges = np.linspace(0, wide, 9 if bend else 3).astype(int)
    centre = height / 2

    def source(x: int, y: int) -> tuple[float, float]:
        across = 2 * x / wide - 1
        down = (y - centre) * (1 + nearer * across) + turn * across * width / 2 + bend * (across**2 - 0.4)
        return x * width / wide + shear * (y - centre), centre + down

    meshes: Meshes = []
    for start, end in pairwise(edges):
        corners = (start, 0), (start, height), (end, height), (end, 0)
        places = tuple(part for corner in corners for part in source(*corner))
        meshes.append(((int(start), 0, int(end), height), places))
    return (wide, height), PIL.Image.Transform.MESH, meshes, PIL.Image.Resampling.BILINEAR


def texture(shape: tuple[int, ...], generator: np.random.Generator, octaves: int | None = None) -> np.ndarray:
    """Smooth noise (h, w) between about -1 and 1, of several sizes and perhaps drawn out to one side."""
    height, width = shape
    total = np.zeros(shape, np.float32)
    drawn_out = np.exp(generator.normal(0, 0.8))
    for octave in range(octaves or int(generator.integers(1, 5))):
        rows = min(max(int(2 * 2**octave * drawn_out), 2), height)
        columns = min(max(int(2 * 2**octave * width / height / drawn_out), 2), width)
        cells = PIL.Image.fromarray(generator.normal(0, 0.5, (rows, columns)).astype(np.float32))
        total += np.asarray(cells.resize((width, height), PIL.Image.Resampling.BILINEAR)) * 0.75**octave
    return total


def slope(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """A plane (h, w) from about -1 to 1."""
    down, across = generator.normal(0, 0.6, 2)
    return np.linspace(-down, down, shape[0], dtype=np.float32)[:, None] + np.linspace(
        -across, across, shape[1], dtype=np.float32
    )


def photograph(image: np.ndarray, lowest: int, generator: np.random.Generator) -> PIL.Image.Image:
    """What a camera keeps of grey values (h, w): perhaps shaken, blurred, small, noisy and compressed.

    `lowest` is the least height that it is reduced to.
    """
    if generator.random() < 0.12:
        length, axis = int(generator.integers(2, 6)), int(generator.integers(0, 2))
        image = np.mean([np.roll(image, step, axis) for step in range(length)], axis=0)
    shown = PIL.Image.fromarray(image.clip(0, 255).astype(np.uint8))
    if generator.random() < 0.5:
        shown = shown.filter(ImageFilter.GaussianBlur(generator.uniform(0.3, 1.3)))
    height = int(np.exp(generator.uniform(np.log(lowest), np.log(64))))
    if height < shown.height:
        width = max(round(shown.width * height / shown.height), 3)
        shown = shown.resize((width, height), PIL.Image.Resampling.BILINEAR)
    if generator.random() < 0.6:
        noise = generator.normal(0, generator.uniform(0, 9), (shown.height, shown.width))
        shown = PIL.Image.fromarray((np.asarray(shown) + noise).clip(0, 255).astype(np.uint8))
    if generator.random() < 0.5:
        file = BytesIO()
        shown.save(file, "JPEG", quality=int(generator.integers(15, 85)))
        shown = PIL.Image.open(file)
        shown.load()
    return shown
