"""What a tagged text says about words: which are known, which tag each has most often, and how words are spelt."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from unicodedata import normalize
from zlib import crc32

from foveate.config import from_dict
from foveate.data.text.tagged import Tagged
from foveate.errors import UserError
from foveate.files import read_json
from foveate.special_tokens import LEARNED

SPELLINGS = 2**14
"""Features of spelling are distinguished by a number below this, the rest of a hash: no table of them need be kept."""

RESERVED = LEARNED.first_word
"""Numbers before those of the words."""


@dataclass(frozen=True)
class Lexicon:
    """The words of a training text. Those that occur once there have no number of their own: they are what unknown
    words look like, so a model learns from them what to make of one."""

    words: dict[str, str]
    """Each word with the tag that it has most often; the most frequent words first."""
    repeated: int
    """How many of them, the first ones, occur more than once."""
    tags: tuple[str, ...]
    """The most frequent first."""

    @classmethod
    def learn(cls, text: Iterable[Tagged]) -> "Lexicon":
        """The lexicon of a text, read once. Among equally frequent words or tags the first in the text comes first."""
        tags_of_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for sentence in text:
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                tags_of_word[word][tag] += 1
        words = {word: _most_frequent(tags) for word, tags in sorted(tags_of_word.items(), key=_rarity)}
        repeated = sum(tags.total() > 1 for tags in tags_of_word.values())
        all_tags: Counter[str] = Counter()
        for tags in tags_of_word.values():
            all_tags.update(tags)
        return cls(words, repeated, tuple(tag for tag, _ in all_tags.most_common()))

    def follow(self, trained: "Lexicon") -> "Lexicon":
        """This lexicon with the numbers that words have in another one; what is new to it has none."""
        return Lexicon(trained.words | self.words, trained.repeated, self.tags)

    @property
    def vocabulary(self) -> int:
        """How many numbers there are for words, the reserved ones included."""
        return RESERVED + self.repeated

    @cached_property
    def tag_of_unknown(self) -> str:
        """The most frequent tag of words that occur once, or (where there are none) of all."""
        rare = Counter(list(self.words.values())[self.repeated :])
        return _most_frequent(rare) if rare else self.tags[0]

    def rows(self, words: Iterable[str]) -> Iterator[list[int]]:
        """For each word its number (the unknown token for one without) and its `spelling`."""
        composed = (normalize("NFC", word) for word in words)  # as those that were learned
        return ([self._numbers.get(word, LEARNED.unknown), *spelling(word)] for word in composed)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        known = list(self.words)[: self.repeated]
        return {word: number for number, word in enumerate(known, RESERVED)}

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), ensure_ascii=False), encoding="utf-8")


def load_lexicon(path: Path) -> Lexicon:
    """Reads what `Lexicon.save` wrote. Raises UserError where it is missing or damaged."""
    if not path.exists():
        raise UserError(f"{path.parent} has no {path.name}")
    return from_dict(Lexicon, read_json(path), str(path))


def spelling(word: str) -> list[int]:
    """Numbers of a word's last 1 to 4 letters, its first 1 to 3, and its shape, each below SPELLINGS.

    Endings are what tells an unknown word's part of speech in many languages ("-ly", "-ing", "-tion"); the shape tells
    names, numbers and abbreviations.
    """
    return [crc32(feature.encode()) % SPELLINGS for feature in _features(word)]


def _features(word: str) -> Iterator[str]:
    lower = word.lower()
    for length in (1, 2, 3, 4):
        yield f"{length} last {lower[-length:]}"
    for length in (1, 2, 3):
        yield f"{length} first {lower[:length]}"
    yield f"shape {_shape(word)}"


def _shape(word: str) -> str:
    """'Xx' for a name, 'd-x' for '3-year': capitals, small letters and digits, each run as one."""
    classes = ("X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign for sign in word)
    return re.sub(r"(.)\1+", r"\1", "".join(classes))


def _most_frequent(tags: Counter[str]) -> str:
    return tags.most_common(1)[0][0]


def _rarity(item: tuple[str, Counter[str]]) -> int:
    return -item[1].total()
