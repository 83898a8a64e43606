"""Pairs of sentences of the Brown corpus: one and the next of the same text, or one and a sentence of elsewhere.

The task is BERT's next sentence prediction (Devlin et al. 2019, section 3.1). Every sentence is in one pair only, and a
wrong second sentence is about as long as the right one, so that neither tells anything alone.
"""

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.sources.brown import open_brown
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

if TYPE_CHECKING:  # it imports torch
    from foveate.data.text.labelled_pairs import LabelledPair

SHORTEST, LONGEST = 5, 30
"""Words of a sentence, punctuation included."""

NEXT, OTHER = "next", "other"


def open_next_sentences(before_fetch: BeforeFetch) -> "Splits[Dataset[LabelledPair]]":
    """Pairs of sentences, half of each part with the next sentence."""
    brown, parts = open_brown(before_fetch), []
    for seed, (side, text) in enumerate(
        zip(("train", "dev", "test"), (brown.train, brown.dev, brown.test), strict=True)
    ):
        pairs = sentence_pairs((sentence.words for sentence in text), seed)
        parts.append(Dataset(f"next-sentences.{side}", pairs, "pairs"))
    return Splits(*parts)


def sentence_pairs(sentences: Iterable[Sequence[str]], seed: int) -> "list[LabelledPair]":
    """Neighbours of fitting length; in half of the pairs, drawn at random, the second sentences change places."""
    from foveate.data.text.labelled_pairs import LabelledPair
    from foveate.data.text.match_pairs import partners

    found, waiting = [], None
    for number, words in enumerate(sentences, 1):
        fits = SHORTEST <= len(words) <= LONGEST
        if fits and waiting is not None:
            found.append((f"sentence {number - 1}", waiting, _text(words)))
            waiting = None
        else:
            waiting = _text(words) if fits else None
    exchanged = sorted(random.Random(seed).sample(range(len(found)), len(found) // 2))
    lengths = np.array([len(found[place][2]) for place in exchanged], np.int64)
    others = partners(lengths, np.random.default_rng(seed)).tolist()
    seconds = {place: found[exchanged[other]][2] for place, other in zip(exchanged, others, strict=True)}
    return [
        LabelledPair(name, OTHER if place in seconds else NEXT, first, seconds.get(place, second))
        for place, (name, first, second) in enumerate(found)
    ]


def _text(words: Sequence[str]) -> str:
    return " ".join(words).replace("``", '"').replace("''", '"')


SOURCE = Source(
    name="next-sentences",
    tasks=("pair",),
    about="pairs of sentences of the Brown corpus: half of them follow each other, half are of different places",
    size="6 MB",
    licence="MIT for the package; the corpus 'distributed with the permission of the copyright holder'",
    open=open_next_sentences,
)
