"""gettext catalogues made by hand."""

import struct
from collections.abc import Mapping
from pathlib import Path

HEADER = "Content-Type: text/plain; charset={charset}\nPlural-Forms: {plural};\n"
PLURAL = "nplurals=2; plural=n > 1"


def write_mo(
    path: Path, messages: Mapping[str, str], charset: str = "UTF-8", order: str = "<", plural: str = PLURAL
) -> Path:
    """An .mo file. A context goes before the id of a message with "\\x04"; "\\0" separates plurals and plural forms."""
    table = {"": HEADER.format(charset=charset, plural=plural), **messages}
    entries = sorted((key.encode(charset), value.encode(charset)) for key, value in table.items())
    count = len(entries)
    offset = 28 + 16 * count
    tables, strings = [], b""
    for side in (0, 1):
        for entry in entries:
            tables += [len(entry[side]), offset + len(strings)]
            strings += entry[side] + b"\0"
    numbers = [0x950412DE, 0, count, 28, 28 + 8 * count, 0, 28, *tables]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack(f"{order}{len(numbers)}I", *numbers) + strings)
    return path


def write_po(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + text, encoding="utf-8")
    return path
