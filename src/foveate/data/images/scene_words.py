"""Images of words as photographs have them: drawn in a scene, then seen by a poor camera.

    choose_scene_words   texts, fonts and seeds: words, numbers, prices, letters without a meaning
    draw_scene           the image: letters -> bent and turned -> cut out -> coloured -> blurred, small, noisy

h, w height and width in pixels. Ink is the share of a pixel that letters cover, from 0 to 1.
"""

import random
import string
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
from PIL import ImageChops, ImageDraw, ImageFilter

from foveate.data.images.word_distortion import LOWEST, photograph, slope, texture, warp
from foveate.data.images.word_images import WordImage
from foveate.data.images.word_rendering import RenderedWord, load_font

LETTERS = 30
"""Size of the letters in pixels before the image is scaled."""

MARGIN = 24
"""Pixels around the word in which neighbours are drawn."""

LENGTHS = {2: 13, 3: 17, 4: 18, 5: 16, 6: 12, 7: 9, 8: 5, 9: 4, 10: 2, 11: 2, 12: 1, 13: 1}
"""Weights of the lengths of words: most words on signs are short."""

SHARES = {"word": 73, "number": 12, "letters": 8, "joined": 3, "single": 4}
"""Weights of the kinds of texts."""

PLAIN = 0.4
"""Share of the words in one grey on a ground of one grey."""

LOW = 0.04
"""Space that letters may lose to the next one, as a share of their size."""


@dataclass(frozen=True)
class SceneWord(RenderedWord):
    """A word in a font, drawn as in a photograph; the seed decides all else. An `Example` of the task `read`."""

    def read(self) -> PIL.Image.Image:
        """Draw the word."""
        return draw_scene(self.label, self.font, np.random.default_rng(self.seed))


def choose_scene_words(words: Sequence[str], fonts: Sequence[Sequence[Path]], count: int, seed: int) -> list[WordImage]:
    """`count` texts, each in a random font; a family of n fonts is taken with weight sqrt(n)."""
    generator = random.Random(seed)
    by_length: dict[int, list[str]] = defaultdict(list)
    for word in words:
        by_length[len(word)].append(word)
    families = generator.choices(fonts, [len(family) ** 0.5 for family in fonts], k=count)
    found: list[WordImage] = []
    for number, family in enumerate(families, 1):
        text = _text(by_length, generator)
        found.append(SceneWord(f"word {number}", text, generator.choice(family), generator.getrandbits(31)))
    return found


def _text(words: Mapping[int, Sequence[str]], generator: random.Random) -> str:
    """A text as on signs; one in twelve has a sign of punctuation."""
    kind = generator.choices([*SHARES], [*SHARES.values()])[0]
    if kind == "number":
        text = _number(generator)
    elif kind == "single":
        text = generator.choice(string.ascii_letters + string.digits)
    elif kind == "letters":
        text = "".join(generator.choices(string.ascii_lowercase, k=generator.randint(2, 8)))
    elif kind == "joined":
        text = _word(words, generator) + generator.choice([_word(words, generator), _number(generator)])
    else:
        text = _word(words, generator)
    share = generator.random()
    text = text.upper() if share < 0.55 else text.capitalize() if share < 0.77 else text
    if generator.random() < 0.08:
        before, after = generator.choice([*(("", sign) for sign in ".,!?:;-&'"), ("(", ")"), ('"', '"'), ("", "'s")])
        text = f"{before}{text}{after}"
    return text


def _word(words: Mapping[int, Sequence[str]], generator: random.Random) -> str:
    lengths = [length for length in LENGTHS if length in words] or [*words]
    length = generator.choices(lengths, [LENGTHS.get(length, 1) for length in lengths])[0]
    return generator.choice(words[length])


def _number(generator: random.Random) -> str:
    """Digits, a price, a time, a decimal number, a share, or a number with a letter."""
    number = generator.randrange(10 ** generator.choice([1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7]))
    if generator.random() < 0.7:
        return str(number)
    hour, two = number % 24, generator.randrange(100)
    forms = f"${number % 1000}", f"${hour}.{two:02}", f"{hour}:{two % 60:02}", f"{hour}.{two}", f"{two}%"
    return generator.choice([*forms, f"{two}{generator.choice('abcdkm')}", f"{generator.choice('abmx')}{two}"])


def draw_scene(text: str, font: Path, generator: np.random.Generator) -> PIL.Image.Image:
    """A grey image of the text, at least 14 pixels high."""
    word, neighbours = _write(text, font, generator)
    warping = warp(word.size, LETTERS, generator)
    word = word.transform(*warping)
    if neighbours is not None:
        neighbours = neighbours.transform(*warping)
    box = _crop(word, neighbours is not None, generator)
    ink = word if neighbours is None else ImageChops.lighter(word, neighbours)
    return photograph(_colour(ink.crop(box), generator), LOWEST, generator)


def _write(text: str, font: Path, generator: np.random.Generator) -> tuple[PIL.Image.Image, PIL.Image.Image | None]:
    """Ink (h, w) of the text, and for some that of neighbours: of a line above or below, of letters beside it."""
    face = load_font(font, LETTERS)
    bold = int(generator.random() < 0.2)
    spaced = generator.random() < 0.3
    space = LETTERS * generator.uniform(-LOW, 0.3) if spaced else 0.0
    left, top, right, bottom = face.getbbox(text)
    width = right - left + int(max(space, 0) * len(text)) + 2 * MARGIN
    size = int(width + 4), int(max(bottom - top, 6) + 2 * MARGIN)
    ink = PIL.Image.new("L", size, 0)
    pen, x, y = ImageDraw.Draw(ink), MARGIN - left, MARGIN - top
    if spaced:
        for letter in text:
            pen.text((x, y), letter, fill=255, font=face, stroke_width=bold)
            x += face.getlength(letter) + space
    else:
        pen.text((x, y), text, fill=255, font=face, stroke_width=bold)
    if generator.random() > 0.3 or (box := ink.getbbox()) is None:
        return ink, None
    other = PIL.Image.new("L", size, 0)
    pen, gap = ImageDraw.Draw(other), LETTERS * generator.uniform(0.2, 0.5)
    letters = string.ascii_uppercase if text.isupper() else string.ascii_lowercase
    drawn = "".join(generator.choice([*letters], 12))
    for side in generator.choice(4, generator.integers(1, 3), replace=False):
        anchor = ("ls", "rs", "ms", "mt")[side]
        base = y + face.getmetrics()[0]
        place = ((box[2] + gap, base), (box[0] - gap, base), (size[0] / 2, box[1] - gap), (size[0] / 2, box[3] + gap))
        pen.text(place[side], drawn[:2] if side < 2 else drawn, fill=255, font=face, anchor=anchor)
    return ink, other


def _crop(word: PIL.Image.Image, beside: bool, generator: np.random.Generator) -> tuple[int, int, int, int]:
    """The box that is cut out: tight or loose, with a part of the neighbours at most."""
    left, top, right, bottom = word.getbbox() or (0, 0, *word.size)
    tight = generator.random() < 0.5
    margins = generator.uniform(-0.03, 0.12, 4) if tight else generator.uniform(0.02, 0.45, 4)
    if beside:
        margins = np.minimum(margins + 0.1, 0.55)
    off = np.round(margins * LETTERS).astype(int)
    width, height = word.size
    return max(left - off[0], 0), max(top - off[1], 0), min(right + off[2], width), min(bottom + off[3], height)


def _colour(ink: PIL.Image.Image, generator: np.random.Generator) -> np.ndarray:
    """Grey values (h, w) of letters on a ground, with shadows, outlines and light."""
    share = np.asarray(ink, np.float32) / 255
    shape = share.shape
    ground, letters = 255 * generator.beta(0.8, 0.8, 2)
    least = generator.uniform(80, 190) if generator.random() < 0.85 else 45
    if abs(letters - ground) < least:
        letters = ground + least if ground < 128 else ground - least
    contrast = letters - ground
    image = np.full(shape, ground, np.float32)
    if generator.random() < PLAIN:
        return image + contrast * share
    if generator.random() < 0.55:
        image += texture(shape, generator) * abs(contrast) * generator.uniform(0.03, 0.3)
    if generator.random() < 0.4:
        image += slope(shape, generator) * generator.uniform(0, 0.5) * contrast
    if generator.random() < 0.12:
        _edge(image, ground + contrast * generator.uniform(-0.6, 1), generator)
    kind = generator.random()
    if kind < 0.15:  # a shadow
        shift = generator.integers(-2, 4, 2)
        image += (generator.choice([0, 0, 255]) - image) * np.roll(share, shift, (0, 1)) * generator.uniform(0.4, 1)
    elif kind < 0.3:  # an outline
        around = np.asarray(ink.filter(ImageFilter.MaxFilter(int(generator.choice([3, 3, 5])))), np.float32) / 255
        image += (generator.uniform(0, 255) - image) * around
        near = np.median(image[around > 0.5]) if (around > 0.5).any() else ground
        if abs(letters - near) < least:
            letters = near + least if near < 128 else near - least
    elif kind < 0.34:  # letters that are outlines
        share = share - np.asarray(ink.filter(ImageFilter.MinFilter(3)), np.float32) / 255
    elif kind < 0.39:  # relief
        shift = generator.integers(1, 3, 2) * generator.choice([-1, 1], 2)
        image += (np.roll(share, shift, (0, 1)) - share) * generator.uniform(40, 120)
        share = share * generator.uniform(0, 0.6)
    fill = np.full(shape, letters, np.float32)
    if generator.random() < 0.3:
        fill += texture(shape, generator) * contrast * generator.uniform(0, 0.3)
    if generator.random() < 0.2:
        fill += slope(shape, generator) * contrast * generator.uniform(0, 0.3)
    image += (fill - image) * share
    if generator.random() < 0.1:
        image += texture(shape, generator, 2) * generator.uniform(0, 60)
    return image


def _edge(image: np.ndarray, value: float, generator: np.random.Generator) -> None:
    """Paint a stripe at one or two borders: the edge of a plate, a frame."""
    for side in generator.choice(4, generator.integers(1, 3), replace=False):
        turned = np.rot90(image, side)
        start = int(generator.integers(0, 3))
        turned[start : start + int(generator.integers(1, 1 + max(2, len(turned) // 8)))] = value
