"""Makes sentences of the messages of programs: takes off what is not words, and leaves out what is not a sentence."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

MARKERS = {
    "_": re.compile(r"_(?=[^\W_])"),
    "&": re.compile(r"&(?=[^\W_])(?!\w+;)"),
    "~": re.compile(r"~(?=[^\W\d_])"),
}
"""The characters that toolkits put before the letter of an access key: GTK's, Qt's and LibreOffice's."""

KEY_BEHIND = re.compile(r"\s?\([_&~]\w\)")
"""An access key that is none of the text's own letters, as Chinese and Japanese have it: "ファイル(_F)"."""

TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*+)([^<>]*+)>")
EMPTY_TAGS = ("br", "hr", "p")
ENTITY = re.compile(r"&(?:[A-Za-z]\w{1,30}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")

PLACEHOLDER = re.compile(
    r"%(?:\([^()\s]*\))?(?:\d+\$)?[-+ #0']{0,5}(?:\d{1,4}|\*)?(?:\.\d{1,4})?(?:hh|h|ll|l|L|q|j|z|t)?[A-Za-z%]"
    r"|%L?\d+|\$?\{[^{}\s]*\}|\$\w+"
)
"""What a program replaces: "%s", "%(name)d", "%2$s", "%1", "{name}", "${name}", "$name"."""

WORD = re.compile(r"[^\W\d_]")


def sentences(source: str, target: str) -> tuple[str, str]:
    """Both sides of a message without access keys, paired tags and entities, in single spaces.

    Placeholders stay: a translator has to put them where they belong.
    """
    source, target = (KEY_BEHIND.sub("", side) if "(" in side else side for side in (source, target))
    for marker in MARKERS:
        if marker in source or marker in target:
            source, target = _unmarked(source, target, marker), _unmarked(target, source, marker)
    return _plain(source), _plain(target)


def fault(source: str, target: str) -> str | None:
    """Why two sentences are not translations of each other to learn from, or None where they are."""
    if source.casefold() == target.casefold():
        return "untranslated"
    if not (_has_words(source) and _has_words(target)):
        return "without words"
    return "with damaged letters" if "\N{REPLACEMENT CHARACTER}" in source + target else None


def sifted(pairs: Iterable[tuple[str, str]], left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """The pairs to learn from, each once; the others are counted by reason in `left_out`."""
    seen = set()
    for pair in pairs:
        fingerprint = hash(pair)  # a tenth of the memory of the pair
        reason = fault(*pair) or ("repeated" if fingerprint in seen else None)
        if reason:
            left_out[reason] += 1
        else:
            seen.add(fingerprint)
            yield pair


def _has_words(text: str) -> bool:
    replaced = any(character in text for character in "%{$")
    return WORD.search(PLACEHOLDER.sub("", text) if replaced else text) is not None


def _unmarked(text: str, other: str, marker: str) -> str:
    """The text without its one access key.

    Inside a word, the marker is one only where the other language has one as well, and not the very same word: not in
    user_name or AT&T.
    """
    found = list(MARKERS[marker].finditer(text))
    if len(found) == 1:
        place = found[0].start()
        begin, end = _word_at(text, place)
        if place == begin or (text[begin:end] not in other and len(MARKERS[marker].findall(other)) == 1):
            text = text[:place] + text[place + 1 :]
    return text.replace("&&", "&") if marker == "&" else text


def _word_at(text: str, place: int) -> tuple[int, int]:
    """Finds the run of characters without space around a place."""
    begin = place
    while begin > 0 and not text[begin - 1].isspace():
        begin -= 1
    end = place
    while end < len(text) and not text[end].isspace():
        end += 1
    return begin, end


def _plain(text: str) -> str:
    """Without markup: only tags that are closed, or need not be, are markup; "<file>" alone is a placeholder."""
    if "<" in text:
        closed = {tag[2] for tag in TAG.finditer(text) if tag[1]}
        text = TAG.sub(_tag_text(closed), text)
    if "&" in text:
        text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return " ".join(text.split())


def _tag_text(closed: set[str]) -> Callable[[re.Match[str]], str]:
    """Returns the replacement of a tag: nothing, a space for the end of a line, or the tag where it is not markup."""

    def text(tag: re.Match[str]) -> str:
        name, attributes = tag[2], tag[3]
        if name.lower() in EMPTY_TAGS:
            return " "
        return "" if name in closed or attributes.endswith("/") else tag[0]

    return text
