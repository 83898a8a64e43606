"""Words in any script: in some, such as Chinese, Japanese and Thai, no space separates them."""

import re
from collections.abc import Iterable

_BETWEEN_SPACES = re.compile(r"[^ \t\n\v\f\r]+")

_KANA_AND_OTHERS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese kana
)

_IDEOGRAPHS = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_UNSPACED = re.compile(f"[{_KANA_AND_OTHERS}{_IDEOGRAPHS}]")

_WORD = re.compile(rf"[{_KANA_AND_OTHERS}{_IDEOGRAPHS}]|[^\s{_KANA_AND_OTHERS}{_IDEOGRAPHS}]+")

_OTHER_THAN_CHINESE = re.compile(f"[{_KANA_AND_OTHERS}]")


def split_words(text: str) -> list[str]:
    """The words of a text between spaces, tabs and line ends.

    A no-break space, or another space of Unicode, is inside a word: "10\u00a0000" is one.
    """
    return _BETWEEN_SPACES.findall(text)


def count_words(text: str) -> int:
    """Counts the words of a text; each letter of a script without spaces counts as one."""
    return len(text.split()) if text.isascii() or not _UNSPACED.search(text) else len(_WORD.findall(text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Yields the begin and the end of each of these words."""
    return [found.span() for found in _WORD.finditer(text)]


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
