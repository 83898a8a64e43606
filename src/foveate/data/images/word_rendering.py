"""Images of words, drawn when they are read: text to learn reading from without any files."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import PIL.Image
from PIL import ImageDraw, ImageFilter, ImageFont

from foveate.data.images.word_images import WordImage

FONT_SIZES = (26, 32, 40)
"""Sizes of the letters in pixels, before the image is scaled."""


@dataclass(frozen=True)
class RenderedWord:
    """A word in a font; the seed decides size, colours, slant, blur and noise. An `Example` of the task `read`."""

    place: str
    label: str
    font: Path
    seed: int

    def read(self) -> PIL.Image.Image:
        """Draw the word."""
        return render(self.label, self.font, np.random.default_rng(self.seed))

    def content(self) -> bytes:
        """The word, the font's name and the seed, which decide all pixels."""
        return f"{self.label}\0{self.font.name}\0{self.seed}".encode()


def choose_words(words: Sequence[str], fonts: Sequence[Path], count: int, seed: int) -> list[WordImage]:
    """`count` words, each in a random font and style.

    Of two random words the shorter one is taken, since most words in images are short. Every tenth is a number.
    """
    generator = random.Random(seed)
    found: list[WordImage] = []
    for number in range(1, count + 1):
        word = min(generator.choice(words), generator.choice(words), key=len)
        text = _change_case(word, generator)
        found.append(RenderedWord(f"word {number}", text, generator.choice(fonts), generator.getrandbits(31)))
    return found


def _change_case(word: str, generator: random.Random) -> str:
    """The word in capitals, capitalised, as it is, or instead of it a number."""
    share = generator.random()
    if share < 0.1:
        return str(generator.randrange(10 ** generator.randint(1, 5)))
    return word.upper() if share < 0.45 else word.capitalize() if share < 0.7 else word


def render(text: str, font: Path, generator: np.random.Generator) -> PIL.Image.Image:
    """A grey image of the text, at random dark on light or light on dark, turned, blurred and noisy."""
    face = load_font(font, int(generator.choice(FONT_SIZES)))
    left, top, right, bottom = face.getbbox(text)
    margins = generator.integers(1, 9, 4)
    size = int(right - left + margins[0] + margins[1]), int(bottom - top + margins[2] + margins[3])
    ink = PIL.Image.new("L", size, 0)
    ImageDraw.Draw(ink).text((margins[0] - left, margins[2] - top), text, fill=255, font=face)
    ink = ink.transform(size, PIL.Image.Transform.AFFINE, _slant(size, generator), PIL.Image.Resampling.BILINEAR)
    if generator.random() < 0.5:
        ink = ink.filter(ImageFilter.GaussianBlur(generator.uniform(0.3, 1.3)))
    share = np.asarray(ink, np.float32) / 255
    dark, light = np.sort(generator.uniform(0, 255, 2))
    if light - dark < 70:
        dark, light = max(dark - 40, 0), min(light + 40, 255)
    letters, ground = (dark, light) if generator.random() < 0.6 else (light, dark)
    slope = generator.uniform(-25, 25) * np.linspace(-1, 1, size[0], dtype=np.float32)
    noise = generator.normal(0, generator.uniform(0, 10), share.shape)
    return PIL.Image.fromarray((ground + (letters - ground) * share + slope + noise).clip(0, 255).astype(np.uint8))


def _slant(size: tuple[int, int], generator: np.random.Generator) -> tuple[float, ...]:
    """The affine map of a small rotation and a shear around the middle."""
    turn, shear = generator.normal(0, 0.03), generator.normal(0, 0.12)
    x, y = size[0] / 2, size[1] / 2
    return 1, shear, -shear * y, turn, 1, -turn * x


@lru_cache(4096)
def load_font(path: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(path), size)
