"""Words of an English dictionary, drawn in the fonts of some Debian packages: to learn to read text in images."""

import random
from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.images.word_images import WordImage
from foveate.data.images.word_rendering import choose_words
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.debian import debian_packages
from foveate.data.sources.packages import members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

DICTIONARY = "wamerican"

TRAIN_FONTS = (
    *("dejavu-core", "dejavu-extra", "liberation", "freefont-ttf", "lato", "roboto-unhinted", "open-sans", "cantarell"),
    *("oldstandard", "ebgaramond", "sil-gentium-basic", "quicksand", "jura", "dosis", "linuxlibertine", "inconsolata"),
    *("crosextra-caladea", "league-spartan", "humor-sans", "rufscript", "breip", "ubuntu-title", "georgewilliams"),
    *("opendin", "isabella", "tomsontalks", "yanone-kaffeesatz", "beteckna", "adf-accanthis", "adf-gillius"),
    *("averia-sans-gwf", "averia-serif-gwf", "comfortaa", "lobster", "lobstertwo", "ecolier-court", "sjfonts", "hack"),
)
DEV_FONTS = ("crosextra-carlito", "oxygen", "fantasque-sans")
TEST_FONTS = ("cabin", "play", "vollkorn", "comic-neue")
"""Packages, without the `fonts-` of their names. Those for dev and test have no font in common with those for train."""

NO_LETTERS = ("DejaVuMathTeXGyre", "LinBiolinum_K", "LinLibertine_I.otf")
"""Fonts of these packages with other drawings in the places of letters, or without some."""

LONGEST = 12
"""Letters of the longest word."""

COUNTS = (240_000, 1_000, 2_000)
"""Images to train on, to validate on, and to test on."""


def open_words(before_fetch: BeforeFetch) -> Splits[Dataset[WordImage]]:
    """Images to train on; to validate and test on, of words and in fonts that are in no other part."""
    folder = fetched("words", _fetch, before_fetch)
    with undamaged(folder):
        words = _words(folder / "american-english")
        fonts = [_fonts(folder, packages) for packages in (TRAIN_FONTS, DEV_FONTS, TEST_FONTS)]
    dev, test = len(words) * 9 // 10, len(words) * 95 // 100
    parts = zip(("train", "dev", "test"), (words[:dev], words[dev:test], words[test:]), fonts, COUNTS, strict=True)
    found = []
    for seed, (name, some, faces, count) in enumerate(parts):
        notes = [f"{len(some):,} words in {len(faces)} fonts, and numbers"]
        found.append(Dataset(f"words.{name}", choose_words(some, faces, count, seed), "images", notes))
    return Splits(*found)


def _words(path: Path) -> list[str]:
    """The words of the dictionary in lower case, in an order that is random but always the same."""
    lines = path.read_text(encoding="utf-8").split()
    words = sorted({line.lower() for line in lines if line.isascii() and line.isalpha() and len(line) <= LONGEST})
    random.Random(1).shuffle(words)
    if not words:
        raise ValueError(f"{path.name} has no words")
    return words


def _fonts(folder: Path, packages: tuple[str, ...]) -> list[Path]:
    files = [file for package in packages for file in sorted((folder / package).glob("*.?tf"))]
    found = [file for file in files if not file.name.startswith(NO_LETTERS)]
    if not found:
        raise ValueError(f"no fonts of {' and '.join(packages[:3])}")
    return found


def _fetch(folder: Path) -> None:
    fonts = (*TRAIN_FONTS, *DEV_FONTS, *TEST_FONTS)
    with debian_packages([DICTIONARY, *(f"fonts-{name}" for name in fonts)], folder) as (dictionary, *packages):
        for name, content in members(dictionary, "*/american-english"):
            (folder / Path(name).name).write_bytes(content)
        for font, package in zip(fonts, packages, strict=True):
            (folder / font).mkdir()
            for name, content in members(package, "*.ttf", "*.otf"):
                (folder / font / Path(name).name).write_bytes(content)


SOURCE = Source(
    name="words",
    tasks=("read",),
    about="243,000 images of English words, drawn as they are read, in about 300 fonts of Debian packages",
    size="30 MB",
    licence="that of each font, free; see NAME.copyright",
    open=open_words,
)
