"""Sentences of film reviews that people rated from -4 to 4, as positive or negative; from a Python package's source.

The sentences were collected and rated for VADER (Hutto and Gilbert 2014, https://doi.org/10.1609/icwsm.v8i1.14550).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from foveate.data.labelled import LabelledText
from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import members, sdist_from_pypi
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits, sides

PACKAGE, VERSION = "vaderSentiment", "3.3.2"
SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"

HELD_OUT = 0.1
"""Share of the sentences kept for dev, and again for test."""


def open_movies(before_fetch: BeforeFetch) -> Splits[LabelledText]:
    """The rated sentences; one that occurs twice is on one side."""
    folder = fetched("movie-sentiment", _fetch, before_fetch)
    examples = [(example.label, example.text) for example in LabelledText.from_file(folder / "sentences.tsv")]
    side_of_example = sides([(text, text) for _, text in examples], HELD_OUT)
    texts = []
    for side in ("train", "dev", "test"):
        own = [example for example, place in zip(examples, side_of_example, strict=True) if place == side]
        texts.append(LabelledText.from_pairs(own, f"movie-sentiment.{side}"))
    return Splits(*texts)


def sentences(table: str) -> Iterator[tuple[str, str]]:
    """Label and text of each line of `number<TAB>mean rating<TAB>text`; those rated 0 in the mean are left out."""
    for line in table.split("\n"):
        if line.strip():
            _number, rating, text = line.split("\t")
            if float(rating):
                yield "positive" if float(rating) > 0 else "negative", " ".join(text.split())


def _fetch(folder: Path) -> None:
    """Writes `sentences.tsv` beside the package, which holds its licence."""
    package = sdist_from_pypi(PACKAGE, VERSION, SHA256, folder)
    ((_, archive),) = members(package, "*/hutto_ICWSM_2014.tar.gz")
    with tempfile.TemporaryDirectory(dir=folder) as work:
        inner = Path(work) / "inner.tar.gz"
        inner.write_bytes(archive)
        ((_, content),) = members(inner, "*/movieReviewSnippets_GroundTruth.txt")
    with (folder / "sentences.tsv").open("w", encoding="utf-8") as table:
        table.writelines(f"{label}\t{text}\n" for label, text in sentences(content.decode()))


SOURCE = Source(
    name="movie-sentiment",
    tasks=("classify",),
    about="10,568 sentences of film reviews, positive or negative, from a Python package; a minute to learn",
    size="2.5 MB",
    licence="MIT",
    open=open_movies,
)
