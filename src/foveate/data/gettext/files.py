"""One gettext catalogue (.mo or .po): the messages of a program and their translations.

Nothing of a catalogue is ever run: the formula in it by which a program chooses a plural form is not read.
"""

import codecs
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polib

from foveate.errors import UserError
from foveate.limits import check_file

LITTLE, BIG = b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"
"""The first bytes of an .mo file, by the order of the bytes in its numbers."""

CHARSET = re.compile(rb"charset=([\w.:-]+)")

NO_CHARSETS = ("punycode", "idna", "undefined")
"""What Python can decode and no catalogue is written in; punycode takes time that grows with the square of a text."""

NOT_TRANSLATED = frozenset({"", "translator-credits", "Your names", "Your emails"})
"""Ids of entries that hold facts about the catalogue and its translators."""


class CatalogueMessage(NamedTuple):
    """One wording of a program, and its translation. `key` is the same in every language."""

    key: tuple[str, str, bool]
    english: str
    translation: str


def read_catalogue(path: Path) -> Iterator[CatalogueMessage]:
    """The translated messages of an .mo or .po file. Raises UserError for a file that is damaged or something else.

    Of a message with plural forms the last form goes with the English plural, and, where there are two forms, the first
    with the singular: what other forms stand for differs from language to language.
    """
    check_file(path)
    try:
        entries = _read_po(path) if path.suffix == ".po" else _read_mo(path.read_bytes())
        for context, english, plural, forms in entries:
            if english in NOT_TRANSLATED or not all(forms):
                continue
            if plural:
                yield CatalogueMessage((context, english, True), plural, forms[-1])
            if not plural or len(forms) == 2:
                yield CatalogueMessage((context, english, False), english, forms[0])
    except (OSError, ValueError, LookupError, struct.error) as error:
        raise UserError(f"cannot read the catalogue {path}: {error}") from None


Entry = tuple[str, str, str, list[str]]
"""Context, English, its plural, and the forms of the translation; context and plural may be empty."""


def _read_po(path: Path) -> Iterator[Entry]:
    for entry in polib.pofile(str(path)):
        if not (entry.obsolete or entry.fuzzy):
            forms = [form for _, form in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
            yield entry.msgctxt or "", entry.msgid, entry.msgid_plural, forms


def _read_mo(content: bytes) -> Iterator[Entry]:
    """See "The Format of GNU MO Files" in the manual of gettext."""
    if content[:4] not in (LITTLE, BIG):
        raise ValueError("it is no .mo file")
    order = "<" if content.startswith(LITTLE) else ">"
    _, count, *tables = struct.unpack_from(f"{order}4I", content, 4)
    places = [struct.unpack_from(f"{order}{2 * count}I", content, table) for table in tables]
    if sum(map(sum, (lengths[::2] for lengths in places))) > len(content):
        raise ValueError("its messages are longer than the file")
    charset = "utf-8"
    for number in range(0, 2 * count, 2):
        key, value = (content[place[number + 1] : place[number + 1] + place[number]] for place in places)
        if not key:
            charset = match[1].decode() if (match := CHARSET.search(value)) else charset
            if codecs.lookup(charset).name in NO_CHARSETS:
                raise ValueError(f"its encoding is {charset}, which is none of texts")
        context, _, english = key.decode(charset, "replace").rpartition("\x04")
        english, _, plural = english.partition("\0")
        yield context, english, plural, value.decode(charset, "replace").split("\0")
