"""What a row of the table of sources says: which tasks it serves, what is fetched, how, and under which licence."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from foveate.data.sources.splits import Splits


@dataclass(frozen=True)
class Source:
    """Text by name. A module of this package holds one as `SOURCE`, and the table one line for each."""

    name: str
    tasks: tuple[str, ...]
    """The tasks that can learn from it, such as ("translate",)."""
    about: str
    """One line: what the text is, where it comes from, how long learning takes."""
    size: str
    """What is fetched the first time, such as "0.6 MB"."""
    licence: str
    open: Callable[..., Splits[Any]]
    """`open(before_fetch)`, or, where there are languages, `open(source_language, target_language, before_fetch)`:
    the text, split; `before_fetch` (see `cache.fetched`) is called before something is fetched into the cache."""
    languages: tuple[str, ...] = ()
    """Where there are any: two of them make a pair."""


def to_stderr(line: str) -> None:
    """Print a line about what is fetched."""
    print(line, file=sys.stderr, flush=True)
