"""Fonts that together have every character of some texts, whatever the script."""

import logging
import unicodedata
from collections.abc import Iterable
from functools import cache

import numpy as np
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry, FontPath

DEFAULT = "DejaVu Sans"
"""Comes with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew, Georgian, Armenian and many symbols."""

MISSING = "□"
"""Drawn for a character that no font has."""

_UNFIT = (
    ".last",
    "last resort",
    "adobe blank",
    "stixnonunicode",
    "stixsize",
    "cmb",
    "cmex",
    "cmmi",
    "cmr",
    "cms",
    "cmt",
)
"""Beginnings of the names of fonts that draw a placeholder, nothing, or another character than they are asked for."""

_CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH", "HALFWIDTH")
"""Beginnings of the Unicode names of Chinese, Japanese and Korean characters."""


def cover(texts: Iterable[str]) -> tuple[list[str], dict[int, str | None]]:
    """The font families with which matplotlib can draw these texts, and what to replace in them (for `str.translate`).

    `DEFAULT` comes first, then whichever installed font has the most of what is still missing. What no font has becomes
    `MISSING`, and one line in the log names it and what to install; a joiner or variation selector, which nobody would
    see, is taken out.
    """
    missing = {character for text in texts for character in text}
    fonts = _regular_fonts()
    families = [DEFAULT]
    missing -= _found(fonts[DEFAULT], missing)
    if missing:
        _add_new_fonts()
        fonts = _regular_fonts()
    region = _region(missing)
    while missing:
        family = max(fonts, key=lambda name: (len(_found(fonts[name], missing)), name.endswith(region), "Sans" in name))
        found = _found(fonts[family], missing)
        if not found:
            break
        families.append(family)
        missing -= found
    unseen = {character for character in missing if _is_unseen(character)}
    if missing - unseen:
        _warn(_advice(missing - unseen))
    return families, {ord(character): None if character in unseen else MISSING for character in missing}


@cache
def _add_new_fonts() -> None:
    """Make known the fonts that were installed after matplotlib wrote down its list of them."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError, NotImplementedError):
            continue  # damaged, or made of bitmaps, as most colour emoji are: matplotlib cannot draw with it


def _regular_fonts() -> dict[str, FontEntry]:
    """The upright font of usual weight of each family, in the order of their names."""
    fonts: dict[str, FontEntry] = {}
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: (entry.name, *_unusual(entry))):
        if not entry.name.lower().startswith(_UNFIT):
            fonts.setdefault(entry.name, entry)
    return fonts


def _unusual(entry: FontEntry) -> tuple[bool, int]:
    weight = entry.weight if isinstance(entry.weight, int) else 400
    return entry.style != "normal", abs(weight - 400)


def _found(entry: FontEntry, characters: set[str]) -> set[str]:
    wanted = np.array([ord(character) for character in characters], dtype=np.int32)
    return set(map(chr, np.intersect1d(wanted, _code_points(entry.fname, entry.index), assume_unique=True).tolist()))


@cache
def _code_points(path: str, index: int) -> np.ndarray:
    charmap = font_manager.get_font(FontPath(path, index)).get_charmap()
    return np.fromiter(charmap, dtype=np.int32, count=len(charmap))


def _region(characters: set[str]) -> str:
    """How the names of fonts end that draw Chinese characters as the readers of these texts do."""
    names = " ".join(unicodedata.name(character, "") for character in characters)
    if "HIRAGANA" in names or "KATAKANA" in names:
        return "JP"
    return "KR" if "HANGUL" in names else "SC"


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or "VARIATION SELECTOR" in unicodedata.name(character, "")


@cache
def _warn(advice: str) -> None:
    """Once: the next figure has much the same labels."""
    logging.getLogger(__name__).warning(advice)


def _advice(characters: set[str]) -> str:
    shown = sorted(characters)[:8]
    listed = " ".join(f"{character} (U+{ord(character):04X})" for character in shown)
    more = f" and {len(characters) - len(shown)} more" if len(characters) > len(shown) else ""
    packages = " ".join(sorted({_package(character) for character in characters}))
    return (
        f"no installed font has {listed}{more}: drawn as {MISSING}; install a font with outlines that has them "
        f"(Debian and Ubuntu: apt install {packages}; others: https://notofonts.github.io)"
    )


def _package(character: str) -> str:
    """The Debian package of a font that probably has the character."""
    if unicodedata.name(character, "").startswith(_CJK):
        return "fonts-noto-cjk"
    return "fonts-symbola" if unicodedata.category(character).startswith("S") else "fonts-noto-core"
