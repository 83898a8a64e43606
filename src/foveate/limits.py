"""Bounds on what a file may claim or hold, checked before memory is taken for it."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foveate.errors import UserError

FILE = 128 * 2**20
"""Bytes of a file that is read into memory at once: JSON, vocabularies, tables of settings."""

TABLE = 2**30
"""Bytes of a file that lists a user's examples in one JSON or XML document, such as COCO's."""

ARRAYS = 2**27
"""Bytes of the arrays in one file, as they are in memory."""

DEPTH = 100
"""Lists and tables in each other, in a JSON file."""

NAME = 255
"""Bytes of the name of a file, on most file systems."""

SIZES = (
    (("layer", "depth", "blocks"), 2_000),
    (("head",), 100_000),
    (("label",), 100_000),
    (("vocab", "width", "size", "dim", "length", "position", "feedforward", "channels"), 10_000_000),
)
"""What the names of a model's sizes contain, and the most that they can be: GPT-3 has 96 layers."""

FORMATS = {
    **dict.fromkeys(("size", "width", "patch"), 4_096),
    **dict.fromkeys(("height", "channels", "levels", "bands", "actions"), 1_000),
    "rate": 1_000_000,
    "frames": 1_000_000,
}
"""What says in a processor's file how images, sounds and actions become numbers, and the most that each can be."""

COUNTS = ("labels", "answers", "counts")
"""Tables of such a file whose names are the user's."""


def check_file(path: Path, most: int = FILE) -> None:
    """Raise UserError for a file of more bytes than are read, and for a path that is not a regular file.

    A missing file passes.
    """
    if not os.path.exists(path):  # False of a name that no file can have; a Path's own method would raise
        return
    if not path.is_file():
        raise UserError(f"could not read {path}: it is {'a folder' if path.is_dir() else 'not a regular file'}")
    if (size := path.stat().st_size) > most:
        raise UserError(f"{path} has {size / 2**20:,.0f} MiB; the limit is {most // 2**20:,} MiB")


def check_depth(value: Any, where: Path | str) -> None:
    """Raise UserError for lists and tables that are nested more deeply than `DEPTH`."""
    level, depth = [value], 0
    while level := [part for one in level for part in _parts(one) if isinstance(part, dict | list)]:
        depth += 1
        if depth > DEPTH:
            raise UserError(f"{where} is damaged: lists or tables are nested more than {DEPTH} deep")


def check_sizes(value: Any, where: Path | str) -> None:
    """Raise UserError for a number in a model's config that no model's size can be."""
    for name, size in _numbers(value):
        for parts, most in SIZES:
            if any(part in name for part in parts):
                if size > most:
                    raise UserError(f"{where}: {name} is {_format_size(size)}, but can be at most {most:,}")
                break


def check_formats(value: dict[str, Any], where: Path | str) -> None:
    """Raise UserError for a number in a processor's file that no size of an image or a sound can be, and for one that
    is not finite."""
    own = {name: part for name, part in value.items() if name not in COUNTS}
    for name, number in _numbers(own, of=(int, float)):
        if isinstance(number, float):
            if not math.isfinite(number):
                raise UserError(f"{where}: {name} is {number}, but must be finite")
        elif name in FORMATS and not 1 <= number <= FORMATS[name]:
            raise UserError(f"{where}: {name} is {_format_size(number)}, but must be from 1 to {FORMATS[name]:,}")


def _format_size(number: int) -> str:
    return f"{number:,}" if number < 10**30 else "a number of more than 30 digits"


def _numbers(value: Any, name: str = "", of: tuple[type, ...] = (int,)) -> Iterator[tuple[str, Any]]:
    """All numbers of some types in a tree that `check_depth` has passed, with the name of the entry that has them."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, str(key), of)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part, name, of)
    elif isinstance(value, of) and not isinstance(value, bool):
        yield name, value


def _parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
