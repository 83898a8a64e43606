"""LibreOffice's help pages in many languages, aligned by the ids of their paragraphs; from Debian packages."""

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from foveate.contracts import UserError
from foveate.data.sources.cache import BeforeFetch, fetched, run
from foveate.data.sources.splits import Splits, sides
from foveate.data.text import ParallelText

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


def open_help(source_language: str, target_language: str, before_fetch: BeforeFetch, longest: int = LONGEST) -> Splits:
    """The distinct segments of at most `longest` source words; none of dev or test shares a side with one of train."""
    name = f"libreoffice-help-{source_language}-{target_language}"

    def fetch(folder: Path) -> None:
        _fetch(source_language, target_language, folder)

    segments = ParallelText.from_tsv(fetched(name, fetch, before_fetch) / "segments.tsv")
    pairs = [(source, target) for source, target in segments if len(source.split()) <= longest]
    side_of_pair = sides(pairs, HELD_OUT)
    texts = []
    for side in ("train", "dev", "test"):
        own = [pair for pair, place in zip(pairs, side_of_pair, strict=True) if place == side]
        texts.append(ParallelText.from_pairs(own, f"{name}.{side}"))
    return Splits(*texts)


def aligned(source_pages: Path, target_pages: Path) -> Iterator[tuple[str, str]]:
    """The distinct translated segments of two folders of pages, in the order of the pages.

    A segment is a heading or paragraph with one id in both folders' page of one name. Those that are alike in both
    languages (names of functions, code, what nobody has translated yet) are left out.
    """
    seen = set()
    for page in sorted(source_pages.rglob("*.html")):
        other = target_pages / page.relative_to(source_pages)
        if not other.is_file():
            continue
        targets = segments(other.read_text(encoding="utf-8"))
        for identifier, source in segments(page.read_text(encoding="utf-8")).items():
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
    """Writes `segments.tsv` and the packages' `copyright` into the folder."""
    if not shutil.which("apt-get"):
        raise UserError(
            "libreoffice-help comes as Debian packages, which need apt-get, and this machine has none; "
            "train on sentences of your own with --data SOURCE TARGET"
        )
    work = folder / "work"
    packages = [_package(language) for language in (source_language, target_language)]
    _download(packages, work)
    pages: list[Path] = []
    for package in packages:
        (archive,) = work.glob(f"{package}_*.deb")
        run(["dpkg-deb", "-x", archive.name, package], f"unpack {archive.name}", work)
        pages += (work / package).glob("usr/share/libreoffice/help/*/text")
    with (folder / "segments.tsv").open("w", encoding="utf-8") as table:
        table.writelines(f"{source}\t{target}\n" for source, target in aligned(*pages))
    shutil.copy(work / packages[0] / "usr/share/doc" / packages[0] / "copyright", folder)
    shutil.rmtree(work)


def _package(language: str) -> str:
    return f"libreoffice-help-{'en-us' if language == 'en' else language}"


def _download(packages: list[str], folder: Path) -> None:
    """Fetches packages without being root: apt's lists and archives are kept under the folder instead of /var."""
    lists, archives = folder / "state/lists", folder / "cache/archives"
    for place in (lists, archives):
        (place / "partial").mkdir(parents=True)
    places = {"Dir::State": lists.parent, "Dir::State::Lists": lists, "Dir::Cache": archives.parent}
    apt_get = ["apt-get", "-qq", "-o", "Acquire::Languages=none", "-o", "APT::Update::Error-Mode=any"]
    for option, place in places.items():
        apt_get += ["-o", f"{option}={place}"]
    stale = None
    try:
        run([*apt_get, "update"], "read Debian's lists of packages (is the network up?)", folder)
    except UserError as error:
        stale = error  # one list of many may be out of reach, and not the one needed
    try:
        run([*apt_get, "download", *packages], f"fetch {' and '.join(packages)} (is the network up?)", folder)
    except UserError as error:
        raise stale or error from None
