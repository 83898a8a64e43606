"""Descriptions of Debian's packages in many languages, aligned by the digest of the English one."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path

from foveate.data.gettext.cleaning import sifted
from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.debian import debian_descriptions, locale
from foveate.data.sources.pair_files import read_parts, write_parts
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText

LANGUAGES = ("en", "cs", "da", "de", "es", "fi", "fr", "it", "ja", "nl", "pl", "pt-br", "ru", "sk", "sv", "zh-cn")

HELD_OUT = 0.01
"""Share of the pairs kept for dev, and again for test."""

POINT = re.compile(r"\s+(?:[-*+o•·.]|\d+[.)])\s+(?=\S)")
"""How a point of a list begins."""

END_OF_SENTENCE = re.compile(r"(?<=[.!?…]) (?=[^\W\d_a-zà-ÿ])|(?<=[。！？])(?=.)")
"""Between a full stop and a capital letter, or after the full stop of Chinese and Japanese."""


def open_descriptions(source_language: str, target_language: str, before_fetch: BeforeFetch) -> Splits[ParallelText]:
    """The distinct titles, paragraphs and points of lists, in random order."""
    name = f"debian-descriptions-{source_language}-{target_language}"

    def fetch(folder: Path) -> None:
        with debian_descriptions([locale(source_language), locale(target_language)], folder) as files:
            descriptions = Descriptions(*files)
            pairs = ParallelText(name, descriptions, left_out=lambda: descriptions.left_out)
            write_parts(pairs, HELD_OUT, folder)

    return read_parts(fetched(name, fetch, before_fetch), name)


class Descriptions:
    """The aligned sentences of two languages; calling it reads them anew, counting in `left_out` what is left out."""

    def __init__(self, sources: Sequence[Path], targets: Sequence[Path]) -> None:
        self.left_out: Mapping[str, int] = {}
        self._sources, self._targets = sources, targets

    def __call__(self) -> Iterator[tuple[str, str]]:
        left_out: Counter[str] = Counter()
        originals = {digest: lines for file in self._sources for digest, lines in read_descriptions(file)}
        translations = (found for file in self._targets for found in read_descriptions(file))
        pairs = (aligned(originals[digest], lines) for digest, lines in translations if digest in originals)
        yield from sifted(chain.from_iterable(pairs), left_out)
        self.left_out = left_out


def read_descriptions(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The digest of each package's English description, and the lines of the description in the file's language."""
    with file.open(encoding="utf-8", errors="replace") as stream:
        for empty, lines in groupby(stream, key=lambda line: line == "\n"):
            if not empty:
                _, digest, title, *rest = lines
                yield digest.partition(": ")[2].strip(), [title.partition(": ")[2], *rest]


def aligned(source: Sequence[str], target: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The sentences of two descriptions, given as lines, as far as their numbers agree: paragraph for paragraph where
    there are as many, and within these sentence for sentence; of the others the titles alone."""
    sources, targets = paragraphs(source), paragraphs(target)
    if len(sources) != len(targets):
        sources, targets = sources[:1], targets[:1]
    for pair in zip(sources, targets, strict=False):
        parts = [END_OF_SENTENCE.split(side) for side in pair]
        yield from zip(*parts, strict=True) if len(parts[0]) == len(parts[1]) else [pair]


def paragraphs(lines: Sequence[str]) -> list[str]:
    """The title, the paragraphs and the points of the lists of a description."""
    found: list[str] = []
    begins = True
    for line in lines:
        point = POINT.match(line)
        text = " ".join(
            (line[point.end() :] if point else line).replace("⋅", " ").split()
        )  # drawn for a no-break space
        if begins or point:
            found.append(text)
        elif text != ".":
            found[-1] += f" {text}"
        begins = text == "." or not found[1:]
    return [text for text in found if text != "."]


SOURCE = Source(
    name="debian-descriptions",
    tasks=("translate", "match", "embed"),
    about="what thousands of programs are, sentence by sentence, from Debian's lists of packages; hours to learn",
    size="about 30 MB",
    licence="each package's own",
    open=open_descriptions,
    languages=LANGUAGES,
)
