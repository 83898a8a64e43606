"""LibreOffice's help pages in many languages, aligned by the ids of their paragraphs; from Debian packages."""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.debian import debian_packages
from foveate.data.sources.packages import members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Side, Splits, sides
from foveate.data.text.parallel_corpus import ParallelText

LANGUAGES = (
    *("en", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hi", "hu", "id", "it"),
    *("ja", "ko", "nl", "pl", "pt", "pt-br", "ru", "sk", "sl", "sv", "tr", "vi", "zh-cn", "zh-tw"),
)
"""The endings of Debian's packages, but for English."""

HELD_OUT = 0.03
"""Share of the segments kept for dev, and again for test."""

LONGEST = 14
"""Words of the longest source segment: short ones are what a small model learns within the hour."""

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def open_help(
    source_language: str, target_language: str, before_fetch: BeforeFetch, longest: int = LONGEST
) -> Splits[ParallelText]:
    """The distinct segments of at most `longest` source words; none of dev or test shares a side with one of train."""
    name = f"libreoffice-help-{source_language}-{target_language}"

    def fetch(folder: Path) -> None:
        _fetch(source_language, target_language, folder)

    segments = ParallelText.from_tsv(fetched(name, fetch, before_fetch) / "segments.tsv")
    lines = [line for line, source, _ in segments.pairs() if len(source.split()) <= longest]
    short = segments.part(name, set(lines).__contains__)
    side = dict(zip(lines, sides(short, HELD_OUT), strict=True))

    def part(wanted: Side) -> ParallelText:
        return segments.part(f"{name}.{wanted}", lambda line: side.get(line) == wanted)

    return Splits(part("train"), part("dev"), part("test"))


def aligned(source_pages: Mapping[str, str], target_pages: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The distinct translated segments of two sets of HTML pages, each by its name, in the order of the names.

    A segment is a heading or paragraph with one id in both sets' page of one name. Those that are alike in both
    languages (names of functions, code, what nobody has translated yet) are left out.
    """
    seen = set()
    for name in sorted(source_pages.keys() & target_pages.keys(), key=lambda name: name.split("/")):
        targets = segments(target_pages[name])
        for identifier, source in segments(source_pages[name]).items():
            pair = (source, targets.get(identifier, ""))
            if all(pair) and pair[0] != pair[1] and pair not in seen:
                seen.add(pair)
                yield pair


def segments(page: str) -> dict[str, str]:
    """The text of each heading and paragraph of an HTML page, by its id, in single spaces."""
    reader = _PageReader()
    reader.feed(page)
    reader.close()
    return reader.segments


class _PageReader(HTMLParser):
    """Collects headings and paragraphs. Where the page has one wording for each system or application, side by side
    and hidden until a script chooses, the last is kept, which is the default."""

    def __init__(self) -> None:
        super().__init__()
        self.segments: dict[str, str] = {}
        self._identifier = self._tag = ""
        self._text: list[str] = []
        self._spans: list[int] = []
        """How much text there was when each open span began."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        identifier = values.get("id") or ""
        if tag in ("p", *HEADINGS) and identifier.startswith(("par_", "hd_")):
            self._identifier, self._tag = identifier, tag
            self._text, self._spans = [], []
        elif tag == "span":
            if "hidden" in values and self._spans:
                del self._text[self._spans[-1] :]
            self._spans.append(len(self._text))
        elif tag == "br":
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "span" and self._spans:
            self._spans.pop()
        elif tag == self._tag:
            text = " ".join("".join(self._text).split())
            # where an icon stood between a word and the end of its sentence, a space is left over
            self.segments.setdefault(self._identifier, re.sub(r" (?=[.,](\s|$))", "", text))
            self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag:
            self._text.append(data)


def _fetch(source_language: str, target_language: str, folder: Path) -> None:
    """Writes `segments.tsv` into the folder."""
    names = [_package(language) for language in (source_language, target_language)]
    with debian_packages(names, folder) as packages, (folder / "segments.tsv").open("w", encoding="utf-8") as table:
        pairs = aligned(*map(_pages, packages))
        table.writelines(f"{source}\t{target}\n" for source, target in pairs)


def _package(language: str) -> str:
    return f"libreoffice-help-{'en-us' if language == 'en' else language}"


def _pages(package: Path) -> dict[str, str]:
    """The HTML pages of a package by their names, which are the same in every language."""
    pages = members(package, "usr/share/libreoffice/help/*/text/*.html")
    return {name.partition("/text/")[2]: page.decode() for name, page in pages}


SOURCE = Source(
    name="libreoffice-help",
    tasks=("translate", "match", "embed"),
    about="short segments of LibreOffice's help pages, from Debian packages; technical prose, an hour to learn",
    size="about 15 MB with the lists of packages",
    licence="MPL-2.0",
    open=open_help,
    languages=LANGUAGES,
)

WHOLE = replace(
    SOURCE,
    name="libreoffice-help-all",
    about="all of LibreOffice's help pages, long sentences too",
    open=partial(open_help, longest=sys.maxsize),
)
