"""Flags from dataclasses, and what is wrong with them in one line."""

import contextlib
import difflib
import io
import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any

import tyro

from foveate.cli.aliases import ALIASES, gathered, repeated, short_names, spelled_out
from foveate.cli.help import full_help, in_words, known_options, list_options, whole_help
from foveate.errors import UserError, quoted, unknown

_KINDS = {"INT": ("a whole number", "whole numbers"), "FLOAT": ("a number", "numbers")}
"""What the parser asks for, and how one such and several are called."""

_TEXT = "\ue000"
"""Marks an argument behind `--`, which the parser would otherwise take for a flag; a character of nobody's text."""


def parse(kind: Any, arguments: Sequence[str], command: str, default: Any = None) -> Any:
    """The dataclass `kind` (a generic one may be made specific) filled from a command's arguments.

    What is behind `--` is text, even if it begins with a dash. `--help` and `--help-all` print every field and end the
    program. Raises UserError for arguments that do not fit.
    """
    arguments, text = _before_and_behind(arguments)
    keywords: dict[str, Any] = {} if default is None else {"default": default}
    if {"-h", "--help", "--help-all"} & set(arguments):
        print(whole_help(full_help(kind, command, keywords)))
        raise SystemExit(0)
    if ALIASES.keys() & {word.partition("=")[0] for word in arguments}:
        arguments = spelled_out(arguments, known_options(full_help(kind, command, keywords)))
    if repeated(arguments):
        arguments = gathered(arguments, list_options(full_help(kind, command, keywords)))
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            options, extra = tyro.cli(
                kind,
                args=[*arguments, *(f"{_TEXT}{word}" for word in text)],
                prog=f"foveate {command}",
                return_unknown_args=True,
                **keywords,
            )
    except SystemExit as ended:
        if not ended.code:  # tyro did what it was asked for, such as to print a shell's completions
            raise
        known = known_options(full_help(kind, command, keywords))
        unknown = [word for word in arguments if word.startswith("--") and word.partition("=")[0] not in known]
        if unknown:  # what follows it has been taken for something else
            raise UserError(_unexpected(unknown, kind, command, keywords)) from None
        raise _mistake(complaint.getvalue(), arguments, command) from None
    if extra:
        raise UserError(_unexpected(extra, kind, command, keywords))
    return _without_marks(options) if text else options


def _before_and_behind(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--` and those behind it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end + 1 :])


def _without_marks(options: Any) -> Any:
    """The dataclass without `_TEXT` in its values."""
    for part in fields(options):
        value = getattr(options, part.name)
        if isinstance(value, str | Path):
            setattr(options, part.name, type(value)(str(value).removeprefix(_TEXT)))
        elif isinstance(value, tuple) and value and isinstance(value[0], str):
            setattr(options, part.name, tuple(word.removeprefix(_TEXT) for word in value))
    return options


def _unexpected(extra: Sequence[str], kind: Any, command: str, keywords: dict[str, Any]) -> str:
    flags = [word for word in extra if word.startswith("--")]
    if not flags and extra[0].startswith("-"):
        way = f"foveate {command} ... -- '{extra[0]}'"
        return f"unexpected '{extra[0]}'; text that begins with a dash goes behind --: {way}"
    if not flags:
        return f"unexpected '{extra[0]}'; see foveate {command} --help"
    flag = flags[0].split("=")[0]
    known = known_options(full_help(kind, command, keywords))
    known |= {name for name in short_names(known) if name.startswith("--")}
    # A field is known by its own name; whose field it is ("--decoding.width") is easily forgotten.
    names = difflib.get_close_matches(_field(flag), {_field(option) for option in known}, n=2, cutoff=0.6)
    near = difflib.get_close_matches(flag, [option for option in known if _field(option) in names], n=2, cutoff=0.3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"see foveate {command} --help"
    return f"unknown option {flag}; {hint}"


def _field(option: str) -> str:
    return option.lstrip("-").split(".")[-1]


def _mistake(box: str, arguments: Sequence[str], command: str) -> UserError:
    """What the parser says in a box of several lines, as one line: the option, what was given and what it must be."""
    _title, *lines = re.sub(r"\x1b\[[0-9;]*m", "", box).splitlines()
    texts = [line.strip("│╭╰╮╯ ") for line in lines]  # drawn with dashes alone where the terminal has no more
    words = " ".join(" ".join(text for text in texts if text.strip("-─")).split())
    choice = re.match(r"invalid choice '(.*?)' for argument '(.*?)'\. Expected one of \((.*?)\)", words)
    if choice is not None:
        given, flag, known = choice.groups()
        return unknown(flag, given, [name.replace(" ", "") for name in re.findall("'(.*?)'", known)])
    missing = re.match(r"Missing value for argument '(--.*?)'\. Expected (\d+) values", words)
    if missing is not None:
        return UserError(f"{missing[1]} needs {'a value' if missing[2] == '1' else f'{missing[2]} values'}")
    wrong = re.match(r"Error parsing (--[\w.-]+): ", words)
    kind = None if wrong is None else _wanted(next((text for text in texts if text.startswith(f"{wrong[1]} ")), ""))
    if wrong is not None and kind is not None:
        return UserError(f"{wrong[1]} is {quoted(_given(wrong[1], arguments))}, but must be {kind}")
    message = re.split(" ?(?:Argument helptext:|For full helptext|Got errors:)", words)[0].rstrip(".")
    return UserError(f"{message}; see foveate {command} --help")


def _wanted(usage: str) -> str | None:
    """What an option is to be, from its line in the help: of "--heads [INT [INT ...]]", "whole numbers"."""
    pattern = usage.partition(" ")[2].replace("{None}|", "").strip("{}")
    several = re.fullmatch(r"\[(.*?) \[\1 \.\.\.\]\]", pattern)
    parts = (several[1] if several else pattern).split("|")
    if pattern.count("[") != pattern.count("]"):  # cut by a narrow terminal
        return None
    if not _KINDS.keys() & set(parts):  # a name with a number each, for instance
        return in_words(pattern) or None
    return " or ".join(_KINDS[part][several is not None] if part in _KINDS else part.strip("{}") for part in parts)


def _given(flag: str, arguments: Sequence[str]) -> str:
    """The values of an option, as they were given."""
    place = max(index for index, word in enumerate(arguments) if word.partition("=")[0] == flag)
    values = [arguments[place].partition("=")[2]] if "=" in arguments[place] else []
    values += takewhile(lambda word: not word.startswith("--"), arguments[place + 1 :])
    return " ".join(values)
