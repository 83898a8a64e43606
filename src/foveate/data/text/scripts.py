"""What a word and a letter are, in any script.

Marks belong to the letter before them: the vowel signs of Hindi, the points of Hebrew, the tones of Thai. In some
scripts, such as Chinese, Japanese and Thai, no space separates words; there each letter, with its marks, is a word.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

_BETWEEN_SPACES = re.compile(r"[^ \t\n\v\f\r]+")

_KANA_AND_OTHERS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese kana
)

_IDEOGRAPHS = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_UNSPACED = re.compile(f"[{_KANA_AND_OTHERS}{_IDEOGRAPHS}]")

_OTHER_THAN_CHINESE = re.compile(f"[{_KANA_AND_OTHERS}]")

_JOINERS = "\u200c\u200d"
"""They stand inside words of Persian and Hindi, and change how letters are drawn."""

_LAST_MARK = 0x1F000
"""Behind it there are no marks but selectors of variants, which begin at U+E0100."""


@cache
def _marks() -> str:
    """All combining marks and joiners, for a set of a regular expression. Finding them takes a few milliseconds."""
    marks = (chr(code) for code in range(0x300, _LAST_MARK) if unicodedata.category(chr(code))[0] == "M")
    return f"{''.join(marks)}{_JOINERS}\U000e0100-\U000e01ef"


@cache
def word_pattern(others: str = "") -> re.Pattern[str]:
    """Matches runs of letters, marks, digits and underscores, and of `others`, such as an apostrophe."""
    return re.compile(rf"[\w{_marks()}{others}]+")


@cache
def _word_or_sign() -> re.Pattern[str]:
    letters = f"{_KANA_AND_OTHERS}{_IDEOGRAPHS}"
    return re.compile(rf"[{letters}][{_marks()}]*|(?:(?![{letters}])[\w{_marks()}])+|[^\w\s{_marks()}]")


@cache
def _word() -> re.Pattern[str]:
    letters = f"{_KANA_AND_OTHERS}{_IDEOGRAPHS}"
    return re.compile(rf"[{letters}][{_marks()}]*|[^\s{letters}]+")


def is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it."""
    return unicodedata.category(character)[0] == "M" or character in _JOINERS


def in_word(character: str) -> bool:
    """Whether it is a letter, a mark on one, or a digit."""
    return unicodedata.category(character)[0] in "LMN" or character in _JOINERS


def continues_word(before: str, text: str) -> bool:
    """Whether a text goes on with the word that ends another one, by their characters."""
    return bool(before and text) and in_word(before[-1]) and in_word(text[0])


def begins_word(before: str, text: str) -> bool:
    """Whether a text begins a word right behind another one, as letters of scripts without spaces do."""
    if not before or not text or is_mark(text[0]):
        return not before and bool(text)
    if text[0].isspace() or before[-1].isspace():
        return True
    return in_word(text[0]) and bool(_UNSPACED.match(text[0]) or _UNSPACED.match(before[-1]))


def split_words(text: str) -> list[str]:
    """The words of a text between spaces, tabs and line ends.

    A no-break space, or another space of Unicode, is inside a word: "10\u00a0000" is one.
    """
    return _BETWEEN_SPACES.findall(text)


def words_and_signs(text: str) -> list[str]:
    """The words of a text, and its other signs one by one."""
    return _word_or_sign().findall(text)


def words_of_any_script(text: str) -> list[str]:
    """The words between spaces; of scripts without spaces each letter."""
    return text.split() if text.isascii() or not _UNSPACED.search(text) else _word().findall(text)


def count_words(text: str) -> int:
    """How many of these words a text has."""
    return len(words_of_any_script(text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each of these words begins and ends."""
    return [found.span() for found in _word().finditer(text)]


def unspaced(texts: Iterable[str]) -> bool:
    """Returns whether most letters of the texts are of scripts that do not separate words by spaces."""
    letters, found = 0, 0
    for text in texts:
        found += len(_UNSPACED.findall(text))
        letters += sum(map(str.isalpha, text))
    return 2 * found > letters


def is_chinese(texts: Iterable[str]) -> bool:
    """Returns whether texts in a script without spaces are Chinese: without kana or letters of other such scripts."""
    return not any(_OTHER_THAN_CHINESE.search(text) for text in texts)


def join_texts(texts: Iterable[str]) -> str:
    """The texts one after the other, with a space where the script of both has spaces."""
    joined = ""
    for text in filter(None, map(str.strip, texts)):
        close = not joined or (_UNSPACED.match(text) or _UNSPACED.match(joined[-1]))
        joined += text if close else f" {text}"
    return joined
