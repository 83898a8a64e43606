"""The one door to the `tokenizers` library: files are opened, texts encoded and ids decoded here alone.

A tokenizer is a program that its file holds: it may fail in ways of its own (see `library_panics`), or make a text
longer and longer. Every failure is a UserError of one line, and growth is bounded before it takes memory.
"""

import base64
import binascii
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer

from foveate.data.tokens.library_panics import panics_as_errors
from foveate.errors import UserError
from foveate.files import read_json
from foveate.limits import check_file

UNREADABLE, UNDECODABLE = "the tokenizer cannot read the text", "the tokenizer cannot write the tokens as text"

GROWTH = 256
"""How many times as long a tokenizer may make a text: no known one makes it more than 20 times as long, by Unicode's
compatible characters."""

ADDED = 1000
"""Characters or tokens that a tokenizer may add to a text, whatever its length."""

_INSERTED = ("prepend", "prefix", "suffix", "replacement", "word_delimiter_token", "continuing_subword_prefix")
"""Names of texts that a part of a tokenizer puts between others."""


def open_library(path: Path) -> Tokenizer:
    """The library's tokenizer in a file that is there, which neither pads nor cuts.

    Raises UserError for one that is too large or damaged, and for one that would make texts too long.
    """
    check_file(path)
    check_growth(table := read_json(path), path)
    own = {name for name in table if name.startswith("foveate")}  # which the library does not know
    with in_one_line(f"{path} is not a tokenizer, or is damaged"):
        text = json.dumps({name: value for name, value in table.items() if name not in own}) if own else ""
        tokenizer = Tokenizer.from_str(text) if own else Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer


def copy_of(tokenizer: Tokenizer, text: str | None = None) -> Tokenizer:
    """A tokenizer of its own, of the JSON `text` of a tokenizer where that is given."""
    with in_one_line("the tokenizer cannot be changed as its folder says"):
        return Tokenizer.from_str(tokenizer.to_str() if text is None else text)


def encode(tokenizer: Tokenizer, texts: Sequence[str], add_special_tokens: bool = True) -> list[Encoding]:
    """The tokens of texts. Raises UserError where the library fails, or gives more tokens than a text can have."""
    with in_one_line(UNREADABLE):
        found: list[Encoding] = tokenizer.encode_batch_fast(list(texts), add_special_tokens=add_special_tokens)
    for text, one in zip(texts, found, strict=True):
        check_length_of_tokens(len(one), text)
    return found


def encode_with_offsets(
    tokenizer: Tokenizer, text: str, pair: str | None = None, add_special_tokens: bool = True
) -> Encoding:
    """The tokens of a text, or of two, and their places in it. Raises UserError like `encode`."""
    with in_one_line(UNREADABLE):
        found = tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)
    check_length_of_tokens(len(found), text + (pair or ""))
    return found


def decode(tokenizer: Tokenizer, rows: Sequence[Sequence[int]], skip_special_tokens: bool) -> list[str]:
    """The texts of rows of ids. Raises UserError where the library fails."""
    with in_one_line(UNDECODABLE):
        found: list[str] = tokenizer.decode_batch([list(row) for row in rows], skip_special_tokens=skip_special_tokens)
    return found


def split_into_units(tokenizer: Tokenizer, text: str) -> list[str]:
    """What no token reaches across. Raises UserError like `encode`."""
    with in_one_line(UNREADABLE):
        return [unit for unit, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Turn whatever the library raises, which is nothing more precise than Exception, into a UserError."""
    try:
        with panics_as_errors(what):
            yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{what}: {' '.join(str(error).split())}") from None


def check_length_of_tokens(count: int, text: str) -> None:
    """Raise UserError where a tokenizer gives more tokens than a text can have."""
    if count > GROWTH * (size := len(text.encode())) + ADDED:
        raise UserError(f"{UNREADABLE}: it gives {count:,} tokens for {size:,} bytes")


def check_growth(table: dict[str, Any], where: Path | str) -> None:
    """Raise UserError for a tokenizer's JSON by which a text could become more than GROWTH times as long, or by more
    than ADDED."""
    for step in ("normalizer", "pre_tokenizer", "decoder"):
        parts = list(_parts(table.get(step)))
        if math.prod(map(_growth, parts)) > GROWTH:
            raise UserError(f"{where}: its {step} could make a text more than {GROWTH} times as long")
        if sum(len(text) for part in parts for text in map(part.get, _INSERTED) if isinstance(text, str)) > ADDED:
            raise UserError(f"{where}: its {step} adds more than {ADDED:,} characters to a text")
    for part in _parts(table.get("post_processor")):
        if sum(_count(part.get(name)) for name in ("single", "pair", "special_tokens")) > ADDED:
            raise UserError(f"{where}: its post_processor adds more than {ADDED:,} tokens to a text")


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """The parts of a step, those in sequences too."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(part)


def _growth(part: dict[str, Any]) -> float:
    """How many times as long one part can make a text."""
    if part.get("type") == "Precompiled":
        return max(1.0, _longest_replacement(part.get("precompiled_charsmap")) / 18)  # which Unicode's own longest has
    content, pattern = part.get("content"), part.get("pattern")
    if part.get("type") != "Replace" or not isinstance(content, str):
        return 1.0
    known = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(known, str) and known:
        return max(1.0, len(content) / len(known))
    return len(content) + 1.0 if content else 1.0  # between all characters, where an expression matches nothing


def _longest_replacement(table: Any) -> int:
    """The characters of the longest text in SentencePiece's table of characters: a tree of a size, then texts."""
    try:
        data = base64.b64decode(table) if isinstance(table, str) else b""
    except binascii.Error:
        return 0  # the library refuses it
    texts = data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")
    return max(len(text.decode(errors="replace")) for text in texts)


def _count(value: Any) -> int:
    """The lists and values in a tree."""
    if isinstance(value, dict | list):
        return sum(1 + _count(part) for part in (value.values() if isinstance(value, dict) else value))
    return 0
