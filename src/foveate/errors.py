"""Mistakes of a user, each reported in one clear line."""

import difflib
import math
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

MOST = 2**53
"""No count that a user gives is larger: more would overflow what a computer counts with."""

QUOTED = 60
"""So much of a text is shown where it is wrong."""

LONGEST = 1000
"""Characters of a mistake, at most: a file may hold a name of any length."""

_LONG = re.compile(r"'[^']{401,}'|\S{401,}")
"""What a mistake quotes at more length than reads well, such as a name in a file."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "size calculation overflowed")
"""How torch says it, on a CPU, on a GPU, and where the size is not a number any more."""


class UserError(ValueError):
    """A mistake in what the user gave, in one clear line. The command line prints it and exits with `status`."""

    status = 2

    def __init__(self, message: object) -> None:
        text = printable(str(message))  # before it is measured: an escape has several characters
        text = _LONG.sub(lambda found: _without_middle(found[0], 400), text)
        super().__init__(_without_middle(text, LONGEST))  # what is wrong stands at the beginning, the remedy at the end


class NoTokenizer(UserError):
    """A folder lacks the files of its tokenizer: its model can be used, but it neither reads texts nor writes them."""


class OwnError(UserError):
    """An error that one of several processes finds where the others may find nothing, such as with its GPU."""


def _without_middle(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def quoted(text: str) -> str:
    """A text as an error shows it: no longer than reads well."""
    return f"'{text}'" if len(text) <= QUOTED else f"'{text[:QUOTED]}…'"


def show_value(value: object) -> str:
    """Any value as an error shows it, in one line and no longer than reads well."""
    large = isinstance(value, int) and not -(10**30) < value < 10**30
    text = "a number of more than 30 digits" if large else printable(repr(value).replace("\n", " "))
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def printable(text: str) -> str:
    """A text in which no control character, such as one that a terminal obeys, is more than its escape."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: object) -> str:
    """A text, or a path, in one line: its line ends as their escapes too."""
    return printable(str(text)).replace("\n", "\\n")


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a `name` that is none of the `known` ones, with the nearest of them."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    return UserError(f"unknown {kind} '{name}'; {hint}")


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise UserError unless `value` is one of the `allowed` names of the setting `name`."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise unknown(name, str(value), allowed)


def check_literals(config: Any) -> None:
    """Raise UserError if a field of a dataclass, annotated as a Literal of names, has another value."""
    kinds = get_type_hints(type(config))
    for part in fields(config):
        if get_origin(kinds[part.name]) is Literal:
            one_of(part.name, getattr(config, part.name), get_args(kinds[part.name]))


def of_kind(kind: type | tuple[type, ...], name: str, value: object, what: str) -> None:
    """Raise UserError unless the `value` that is given as `name` is of a kind, which `what` says in words."""
    if not isinstance(value, kind):
        raise UserError(f"{name} is {show_value(value)}, but must be {what}")


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """The value as an int. Raises UserError for one below `least` and for what is not a whole number."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UserError(f"{name} is {show_value(value)}, but must be a whole number") from None
    at_least(least, name, number)
    return number


def two_whole_numbers(name: str, value: Any, least: int = 0) -> tuple[int, int]:
    """A pair of whole numbers. Raises UserError for anything else, and for numbers below `least`."""
    if not isinstance(value, Sequence) or len(value) != 2:
        raise UserError(f"{name} is {show_value(value)}, but must be two whole numbers")
    return whole_number(name, value[0], least), whole_number(name, value[1], least)


def at_least(least: float, name: str, value: float) -> None:
    """Raise UserError for a `value` below `least`, one that is not a number, and a count that none can be."""
    try:
        enough = value >= least
    except TypeError:
        raise UserError(f"{name} is {show_value(value)}, but must be a number") from None
    if not enough:
        kind = "a number" if least == -math.inf else f"at least {least}"
        raise UserError(f"{name} is {value}, but must be {kind}")
    if isinstance(value, int):
        at_most(MOST, name, value)


def at_most(most: float, name: str, value: float) -> None:
    """Raise UserError for a `value` above `most`."""
    if value > most:
        raise UserError(f"{name} is {value:,}, but can be at most {most:,}")


def out_of_memory(error: Exception) -> bool:
    """Returns whether this is what an error means: torch raises the same kind for most that goes wrong."""
    return isinstance(error, MemoryError) or any(reason in str(error) for reason in _OUT_OF_MEMORY)
