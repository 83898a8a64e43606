"""Finds fonts that together have every character of some texts, in any script."""

import logging
import unicodedata
from collections.abc import Iterable
from functools import cache

import numpy as np
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry, FontPath

DEFAULT = "DejaVu Sans"
"""The font of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew, Georgian, Armenian and many symbols."""

MISSING = "□"
"""Replaces a character that no font has."""

_UNSUITABLE = (
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
"""Prefixes of the names of fonts that draw a placeholder, nothing, or another character than requested."""

_CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH", "HALFWIDTH")
"""Prefixes of the Unicode names of Chinese, Japanese and Korean characters."""


def find_fonts(texts: Iterable[str]) -> tuple[list[str], dict[int, str | None]]:
    """The font families with which matplotlib can draw these texts, and replacements for `str.translate`.

    `DEFAULT` is first, then repeatedly the installed font with the most missing characters. A character that no font
    has is replaced by `MISSING`, and a log line says what to install. Invisible characters, such as joiners and
    variation selectors, are removed.
    """
    missing = {character for text in texts for character in text}
    fonts = _regular_fonts()
    families = [DEFAULT]
    missing -= _covered(fonts[DEFAULT], missing)
    if missing:
        _add_new_fonts()
        fonts = _regular_fonts()
    region = _region(missing)
    while missing:
        family = max(
            fonts, key=lambda name: (len(_covered(fonts[name], missing)), name.endswith(region), "Sans" in name)
        )
        found = _covered(fonts[family], missing)
        if not found:
            break
        families.append(family)
        missing -= found
    invisible = {character for character in missing if _is_invisible(character)}
    if missing - invisible:
        _warn(_advice(missing - invisible))
    return families, {ord(character): None if character in invisible else MISSING for character in missing}


@cache
def _add_new_fonts() -> None:
    """Add fonts that were installed after matplotlib cached its list of fonts."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError, NotImplementedError):
            continue  # damaged, or a bitmap font, as most colour emoji fonts are: matplotlib cannot use it


def _regular_fonts() -> dict[str, FontEntry]:
    """The upright font of regular weight of each family, sorted by name."""
    fonts: dict[str, FontEntry] = {}
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: (entry.name, *_unusual(entry))):
        if not entry.name.lower().startswith(_UNSUITABLE):
            fonts.setdefault(entry.name, entry)
    return fonts


def _unusual(entry: FontEntry) -> tuple[bool, int]:
    weight = entry.weight if isinstance(entry.weight, int) else 400
    return entry.style != "normal", abs(weight - 400)


def _covered(entry: FontEntry, characters: set[str]) -> set[str]:
    wanted = np.array([ord(character) for character in characters], dtype=np.int32)
    return set(map(chr, np.intersect1d(wanted, _code_points(entry.fname, entry.index), assume_unique=True).tolist()))


@cache
def _code_points(path: str, index: int) -> np.ndarray:
    charmap = font_manager.get_font(FontPath(path, index)).get_charmap()
    return np.fromiter(charmap, dtype=np.int32, count=len(charmap))


def _region(characters: set[str]) -> str:
    """Suffix of the names of fonts that draw Chinese characters in the regional form of these texts."""
    names = " ".join(unicodedata.name(character, "") for character in characters)
    if "HIRAGANA" in names or "KATAKANA" in names:
        return "JP"
    return "KR" if "HANGUL" in names else "SC"


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or "VARIATION SELECTOR" in unicodedata.name(character, "")


@cache
def _warn(advice: str) -> None:
    """Log it once, since the next figure has similar labels."""
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
