"""Options as people type them: short names, which other tools have too, and lists given piece by piece."""

import re
from collections.abc import Collection, Iterator, Sequence

ALIASES = {
    "-o": ("--out", "--output"),
    "--out": ("--output",),
    "-m": ("--model",),
    "-d": ("--data",),
    "--lr": ("--learning-rate",),
    "--batch-size": ("--batch",),
    "--beam": ("--decoding.width",),
}
"""What each short name stands for: the first of these that a command has."""


def spelled_out(arguments: Sequence[str], known: Collection[str]) -> list[str]:
    """The arguments with the full names of options, where the command has one and not the short name itself."""
    return list(_spelled_out(arguments, known))


def _spelled_out(arguments: Sequence[str], known: Collection[str]) -> Iterator[str]:
    for word in arguments:
        name, equals, value = word.partition("=")
        full = next((option for option in ALIASES.get(name, ()) if option in known), name)
        yield word if name in known else f"{full}{equals}{value}"


def short_names(known: Collection[str]) -> dict[str, str]:
    """The short names that a command takes, and the option that each stands for."""
    chosen = {
        name: next((option for option in options if option in known), None)
        for name, options in ALIASES.items()
        if name not in known
    }
    return {name: option for name, option in chosen.items() if option is not None}


def repeated(arguments: Sequence[str]) -> bool:
    """Returns whether an option is given twice."""
    names = [word.partition("=")[0] for word in arguments if _is_option(word)]
    return len(set(names)) < len(names)


def gathered(arguments: Sequence[str], lists: Collection[str]) -> list[str]:
    """The arguments with all values of each option that takes a list (`--stop A --stop B`) where it is first given."""
    parts: dict[str | int, list[str]] = {-1: []}
    values = parts[-1]
    for index, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if _is_option(word) and name in lists:
            values = parts.setdefault(name, [name])
            values.extend([value] if equals else [])
        elif _is_option(word):
            values = parts[index] = [word]
        else:
            values.append(word)
    return [word for part in parts.values() for word in part]


def _is_option(word: str) -> bool:
    return re.match("--?[a-z]", word) is not None
