"""Names that people gave to emoji, in many languages, and messages made of them; from the Python package `emoji`.

Nothing of the package is installed or run: its JSON tables are read out of the wheel.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.packages import members, wheel_from_pypi
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits, sides
from foveate.data.text.parallel_corpus import ParallelText
from foveate.files import parse_json

VERSION = "2.16.0"
WHEEL = f"emoji-{VERSION}-py3-none-any.whl"
WHEEL_SHA256 = "c4230d80640def9071599ff56b1b5950fe13a2a94c0da98c5deab12431b24330"

LANGUAGES = ("en", "fr", "de", "es", "it", "pt", "id", "tr", "ar", "fa", "ja", "ko", "zh")
"""Russian is left out: the package misspells many of its names (и for й)."""

HELD_OUT = 0.08
"""Share of the names that are kept for dev, and again for test."""

LONGEST_MESSAGE = 6


class Name(NamedTuple):
    """The name of an emoji in two languages; or a message: several emoji, and their names in a row."""

    emoji: str
    source: str
    target: str


def open_emoji(
    source_language: str,
    target_language: str,
    before_fetch: BeforeFetch,
    lines: tuple[int, int, int] = (20_000, 500, 1_000),
    seed: int = 1,
) -> Splits[ParallelText]:
    """Messages for train, dev and test, as many as `lines` says; no name occurs in two of the three.

    Each text's `notes` hold the emoji of its lines, separated by spaces.
    """
    folder = fetched(f"emoji-{VERSION}", _download, before_fetch)
    with undamaged(folder):
        names = emoji_names(folder / WHEEL, source_language, target_language)
    side_of_name = sides([(name.source, name.target) for name in names], HELD_OUT)
    texts = []
    for side, count in zip(("train", "dev", "test"), lines, strict=True):
        own = [name for name, place in zip(names, side_of_name, strict=True) if place == side]
        messages = emoji_messages(own, count, seed)
        pairs = [(message.source, message.target) for message in messages]
        title = f"emoji.{source_language}-{target_language}.{side}"
        texts.append(ParallelText.from_pairs(pairs, title, [message.emoji for message in messages]))
    return Splits(*texts)


def emoji_names(wheel: Path, source_language: str, target_language: str) -> list[Name]:
    """The distinct pairs of names, in the package's order; 4,062 for English and French.

    More than half of them are of people in five skin tones, put together by rule. About one in fifty emoji has two
    translations, one for each way to write it (with and without the selector that asks for a coloured picture).
    """
    source_names, target_names = (_names(wheel, language) for language in (source_language, target_language))
    distinct: dict[tuple[str, str], str] = {}
    for emoji, source in source_names.items():
        target = target_names.get(emoji)
        if source and target:
            distinct.setdefault((source, target), emoji)
    return [Name(emoji, source, target) for (source, target), emoji in distinct.items()]


def emoji_messages(names: Sequence[Name], count: int, seed: int) -> list[Name]:
    """`count` messages, each of 1 to 6 different names drawn at random and joined by commas."""
    generator = random.Random(seed)
    messages = []
    for _ in range(count):
        drawn = generator.sample(names, generator.randint(1, LONGEST_MESSAGE))
        emoji, sources, targets = zip(*drawn, strict=True)
        messages.append(Name(" ".join(emoji), ", ".join(sources), ", ".join(targets)))
    return messages


def _names(wheel: Path, language: str) -> dict[str, str]:
    """Each emoji's name. English is in a table of its own layout, beside other facts."""
    path = f"emoji/unicode_codes/{'emoji' if language == 'en' else f'emoji_{language}'}.json"
    table = parse_json(dict(members(wheel, path))[path], path)
    return {emoji: _clean(facts["en"] if language == "en" else facts) for emoji, facts in table.items()}


def _clean(name: str) -> str:
    """':médaille_d’or:' is 'médaille d’or'."""
    words = name.strip(":").replace("_", " ").replace(",", ", ")
    return " ".join(words.split())


def _download(folder: Path) -> None:
    wheel_from_pypi("emoji", VERSION, WHEEL_SHA256, folder)


SOURCE = Source(
    name="emoji",
    tasks=("translate", "match", "embed"),
    about="messages of 1 to 6 names that people gave to emoji, from a Python package; minutes to learn",
    size="0.6 MB",
    licence="BSD-3-Clause, names from Unicode CLDR under Unicode-3.0",
    open=open_emoji,
    languages=LANGUAGES,
)
