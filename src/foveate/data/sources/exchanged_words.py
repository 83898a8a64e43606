"""Sentences as they were written, and sentences with two neighbouring words exchanged: to learn what order says.

The task is the bigram shift of Conneau et al. 2018 (https://arxiv.org/abs/1805.01070), made from the Brown corpus. Both
labels have the same words, so that counting words says nothing.
"""

import random
from collections.abc import Iterable, Sequence

from foveate.data.sources.brown import open_brown
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import LabelledText

SHORTEST, LONGEST = 5, 25
"""Words of a sentence, punctuation included."""

WRITTEN, EXCHANGED = "as written", "exchanged"


def open_exchanged_words(before_fetch: BeforeFetch) -> Splits[LabelledText]:
    """Sentences to learn from both ways; of those to measure on, half as they are and half with two words exchanged."""
    brown, parts = open_brown(before_fetch), []
    for seed, text in enumerate((brown.train, brown.dev, brown.test)):
        pairs = labelled_sentences((sentence.words for sentence in text), seed, both=text is brown.train)
        parts.append(LabelledText.from_pairs(pairs, text.name.replace("brown", "exchanged-words").removesuffix(".tsv")))
    return Splits(*parts)


def labelled_sentences(sentences: Iterable[Sequence[str]], seed: int, both: bool = False) -> list[tuple[str, str]]:
    """Label and text of each sentence of a fitting length, in which there is something to exchange; `both` ways, or
    one of them by chance."""
    generator, found = random.Random(seed), []
    for words in sentences:
        places = exchangeable(words)
        if not (SHORTEST <= len(words) <= LONGEST and places):
            continue
        place = generator.choice(places)
        exchanged = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
        ways = [(WRITTEN, " ".join(words)), (EXCHANGED, " ".join(exchanged))]
        found += ways if both else [generator.choice(ways)]
    return found


def exchangeable(words: Sequence[str]) -> list[int]:
    """Places of two neighbours that are words, differ, and do not begin the sentence, whose capital would tell."""
    return [
        place
        for place in range(1, len(words) - 1)
        if all(word[0].isalpha() for word in words[place : place + 2])
        and words[place].casefold() != words[place + 1].casefold()
    ]


SOURCE = Source(
    name="exchanged-words",
    tasks=("classify",),
    about="sentences of the Brown corpus, half of them with two neighbouring words exchanged: only their order tells",
    size="6 MB",
    licence="MIT for the package; the corpus 'distributed with the permission of the copyright holder'",
    open=open_exchanged_words,
)
