"""Recorded sentences of a package as three parts, none of which has a text of another."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from unicodedata import normalize

from foveate.data.dataset import Dataset
from foveate.data.sounds.labelled import LabelledSound, labelled_sounds
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.splits import Splits

PARTS = ("train", "dev", "test")

EACH, TEST, DEV = 20, (3, 9, 15), (0,)
"""Of each twenty different texts, which are for the test and which for validation."""

SIGNS = r" .,;:!?'’\"“”«»…-"

SPOKEN = re.compile(rf"[{SIGNS}]*[^\W\d_](?:[^\W\d_]|[{SIGNS}])*")
"""Matches texts of words alone. Those with digits, signs or remarks in brackets say something else than is heard."""

PUNCTUATION = re.compile(r"[^\w' ]|(?<!\w)'|'(?!\w)")
"""An apostrophe within a word is none."""


def open_parts(name: str, fetch: Callable[[Path], None], before_fetch: BeforeFetch) -> Splits[Dataset[LabelledSound]]:
    """The three parts that `fetch` has `write_parts` write, once, into the cache."""
    folder = fetched(name, fetch, before_fetch)
    with undamaged(folder):
        return Splits(*(labelled_sounds([folder / f"{part}.tsv"], f"{name}.{part}") for part in PARTS))


def write_parts(folder: Path, sounds: Iterator[tuple[str, bytes, str]]) -> None:
    """Write sounds, each with its name, its file's content and its text, in three parts by their texts."""
    lines: dict[str, list[str]] = {part: [] for part in PARTS}
    numbers: dict[str, int] = {}
    for name, content, text in sounds:
        if not (words := plain_text(text)):
            continue
        place = numbers.setdefault(words, len(numbers)) % EACH
        part = "test" if place in TEST else "dev" if place in DEV else "train"
        (folder / name).write_bytes(content)
        lines[part].append(f"{name}\t{words}\n")
    for part, own in lines.items():
        (folder / f"{part}.tsv").write_text("".join(own), encoding="utf-8")


def plain_text(text: str) -> str:
    """A text in small letters without punctuation; empty where a digit, a sign or a remark in brackets stands in it."""
    if not SPOKEN.fullmatch(normalize("NFC", text)):
        return ""
    return " ".join(PUNCTUATION.sub(" ", normalize("NFC", text).replace("’", "'")).lower().split())
