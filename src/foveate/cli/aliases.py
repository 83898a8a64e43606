"""Short names of options that people type often, or know from other tools."""

from collections.abc import Collection, Iterator, Sequence

ALIASES = {
    "-o": ("--out",),
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
    found = {
        name: next((option for option in options if option in known), None)
        for name, options in ALIASES.items()
        if name not in known
    }
    return {name: option for name, option in found.items() if option is not None}
