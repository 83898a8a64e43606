"""The recorded runs that docs/systems.md is made of, and their commands as words."""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import systems
from systems import Record

__all__ = ["RECORDS", "Record", "systems", "value_of", "without"]

RECORDS = systems.records()


def without(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The words of a command without some flags and the value of each."""
    left = list(words)
    for flag in flags:
        if flag in left:
            del left[(place := left.index(flag)) : place + 2]
    return left


def value_of(words: Sequence[str], flag: str) -> str | None:
    """What stands behind a flag."""
    return words[words.index(flag) + 1] if flag in words else None
