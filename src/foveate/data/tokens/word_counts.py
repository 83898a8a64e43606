"""How often the words of texts occur, counted in bounded memory: where there are too many, the rarest are forgotten."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from zlib import crc32

MOST = 2_500_000
"""Characters of the different words that are counted: about 300,000 words, for which learning subwords takes 300 MB."""

PIECE = 1_000
"""Texts that are counted together."""

LINE = 100
"""Words of a text that `texts` gives."""


class WordCounts:
    """The words of texts, separated by spaces, with their counts.

    All of them, where they have at most `MOST` characters; otherwise the most frequent, and among those that occur
    equally often the ones that a hash of their letters draws, wherever they stand. The same texts give the same words.
    A word that is forgotten and comes again is counted from one.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter[str]()
        self._forgotten = set[str]()  # their characters
        coming = iter(texts)
        while piece := list(islice(coming, PIECE)):
            for text in piece:
                self._counts.update(text.split(" "))
            self._forget(2 * MOST)
        self._forget(MOST)

    def texts(self) -> Iterator[str]:
        """The words as often as they occur, and each character of the forgotten ones once."""
        words = self._counts.elements()
        while line := " ".join(islice(words, LINE)):
            yield line
        if self._forgotten:
            yield " ".join(sorted(self._forgotten))

    @property
    def report(self) -> str:
        """One line for the user, where words were forgotten."""
        kept = f"the vocabulary was learned from the {len(self._counts):,} most frequent different words"
        return f"{kept}: all of them would have more than {MOST:,} characters" if self._forgotten else ""

    def _forget(self, most: int) -> None:
        """Forget words where their characters are more than `most`, until they are at most `MOST`."""
        counts = self._counts
        if sum(map(len, counts)) <= most:
            return
        kept, size = Counter[str](), 0
        for word in sorted(counts, key=lambda word: (-counts[word], crc32(word.encode()))):
            size += len(word)
            if size <= MOST:
                kept[word] = counts[word]
            else:
                self._forgotten.update(word)
        self._counts = kept
