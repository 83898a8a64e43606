"""Data by name: what packages hold ready to train on, fetched into the user's cache when first asked for."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foveate.contracts import UserError, unknown
from foveate.data.sources import emoji, libreoffice
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.splits import Splits

__all__ = ["SOURCES", "Source", "Splits", "open_source"]


@dataclass(frozen=True)
class Source:
    """One row of the table of sources."""

    name: str
    task: str
    languages: tuple[str, ...]
    """Any two of them make a pair."""
    size: str
    """What is fetched the first time."""
    licence: str
    about: str
    open: Callable[[str, str, BeforeFetch], Splits]
    """From source language, target language, and whom to tell of the place before fetching."""


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="emoji",
            task="translate",
            languages=emoji.LANGUAGES,
            size="0.6 MB",
            licence="BSD-3-Clause, names from Unicode CLDR under Unicode-3.0",
            about="messages of 1 to 6 names that people gave to emoji, from a Python package; minutes to learn",
            open=emoji.open_emoji,
        ),
        Source(
            name="libreoffice-help",
            task="translate",
            languages=libreoffice.LANGUAGES,
            size="about 15 MB with the lists of packages",
            licence="MPL-2.0",
            about="short segments of LibreOffice's help pages, from Debian packages; technical prose, an hour to learn",
            open=libreoffice.open_help,
        ),
    )
}


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def open_source(
    name: str,
    source_language: str = "en",
    target_language: str = "fr",
    announce: Callable[[str], None] = to_stderr,
) -> Splits:
    """The named source in two languages, split; fetched into the cache when it is not there yet.

    `announce` is told in one line what is fetched, how large it is and under which licence. Raises UserError on an
    unknown source or language, and when fetching fails.
    """
    if name not in SOURCES:
        raise unknown("source", name, SOURCES)
    source = SOURCES[name]
    for language in (source_language, target_language):
        if language not in source.languages:
            raise unknown(f"language of {name}", language, source.languages)
    if source_language == target_language:
        raise UserError(f"{name}: source and target language are both '{source_language}'")

    def before_fetch(place: Path) -> None:
        announce(f"fetching {name} ({source.size}; licence {source.licence}) into {place}")

    return source.open(source_language, target_language, before_fetch)
