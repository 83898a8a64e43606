"""Words of an English dictionary, drawn in the fonts of some Debian packages: to learn to read text in images.

words         plain images: one slanted word on an even ground
scene-words   images as photographs have them, in more fonts, with prices, punctuation and letters without a meaning
"""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.images.scene_words import choose_scene_words
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

SCENE_FONTS = (
    *("urw-base35", "dustin", "roadgeek", "tiresias", "bebas-neue", "allerta", "b612", "clear-sans", "courier-prime"),
    *("dancingscript", "kaushanscript", "leckerli-one", "kristi", "quattrocento", "staypuft", "summersby", "tuffy"),
    *("okolaks", "radisnoir", "routed-gothic", "essays1743", "engadget", "blankenburg", "goudybookletter", "sora"),
    *("prociono", "havana", "eurofurence", "bwht", "cherrybomb", "century-catalogue", "arapey", "apropal", "bajaderka"),
    *("adf-baskervald", "adf-berenis", "adf-ikarius", "adf-irianis", "adf-libris", "adf-mekanus", "adf-oldania"),
    *("adf-romande", "adf-solothurn", "adf-switzera", "adf-tribun", "adf-universalis", "adf-verana", "roboto-slab"),
    *("ocr-a", "go", "arkpandora", "fantasma", "junction", "lindenhill"),
)
"""Packages whose fonts join those of TRAIN_FONTS in `scene-words`: for signs, titles and writing by hand."""

NO_LETTERS = (
    *("DejaVuMathTeXGyre", "LinBiolinum_K", "LinLibertine_I.otf"),
    *("D050000L", "StandardSymbolsPS", "Swift"),
)
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
    parts = zip(("train", "dev", "test"), _parts(words), fonts, COUNTS, strict=True)
    found = []
    for seed, (name, some, faces, count) in enumerate(parts):
        notes = [f"{len(some):,} words in {len(faces)} fonts, and numbers"]
        found.append(Dataset(f"words.{name}", choose_words(some, faces, count, seed), "images", notes))
    return Splits(*found)


def open_scene_words(before_fetch: BeforeFetch) -> Splits[Dataset[WordImage]]:
    """Images as photographs have them; those to validate and test on as in `open_words`."""
    families = (*TRAIN_FONTS, *SCENE_FONTS), DEV_FONTS, TEST_FONTS
    folder = fetched("scene-words", partial(_fetch, extra=SCENE_FONTS), before_fetch)
    with undamaged(folder):
        words = _words(folder / "american-english")
        fonts = [[_fonts(folder, (package,)) for package in packages] for packages in families]
    found = []
    for seed, (name, some, faces) in enumerate(zip(("train", "dev", "test"), _parts(words), fonts, strict=True)):
        notes = [f"{len(some):,} words in {sum(map(len, faces))} fonts, numbers, and letters without a meaning"]
        chosen = choose_scene_words(some, faces, COUNTS[seed], seed)
        found.append(Dataset(f"scene-words.{name}", chosen, "images", notes))
    return Splits(*found)


def _parts(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The words to train, to validate and to test on."""
    dev, test = len(words) * 9 // 10, len(words) * 95 // 100
    return words[:dev], words[dev:test], words[test:]


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


def _fetch(folder: Path, extra: Sequence[str] = ()) -> None:
    fonts = (*TRAIN_FONTS, *DEV_FONTS, *TEST_FONTS, *extra)
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

SCENES = Source(
    name="scene-words",
    tasks=("read",),
    about="243,000 images of words and numbers, drawn as photographs have them, in about 600 fonts of Debian packages",
    size="50 MB",
    licence="that of each font, free; see NAME.copyright",
    open=open_scene_words,
)
