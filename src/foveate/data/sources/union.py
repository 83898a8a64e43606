"""Several sources as one, still with nothing held out that is seen in training."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter

from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Prose
from foveate.data.text.parallel_corpus import ParallelText


def union(parts: Sequence[Splits[ParallelText]]) -> Splits[ParallelText]:
    """The sources, mixed evenly from the first pair to the last.

    A pair is left out of the training text when another source holds out its source or its target, in any letter case;
    and out of the text to validate on, when another source tests on one of them.
    """
    name = "+".join(part.train.name.removesuffix(".train") for part in parts)
    test = Mixture([part.test for part in parts], set())
    dev = Mixture([part.dev for part in parts], _sentences(test()))
    train = Mixture([part.train for part in parts], _sentences(test()) | _sentences(dev()))
    return Splits(train.text(f"{name}.train"), dev.text(f"{name}.dev"), test.text(f"{name}.test"))


def union_of_prose(parts: Sequence[Splits[Prose]]) -> Splits[Prose]:
    """The sources, one behind the other."""

    def joined(side: str) -> Prose:
        proses = [getattr(part, side) for part in parts]
        name = "+".join(prose.name.removesuffix(f".{side}") for prose in proses)
        return Prose(f"{name}.{side}", lambda: chain.from_iterable(proses))

    return Splits(joined("train"), joined("dev"), joined("test"))


class Mixture:
    """Texts as one, without the pairs that share a sentence with what is held out; calling it reads them anew."""

    def __init__(self, texts: Sequence[ParallelText], held_out: set[int]) -> None:
        """`held_out` are hashes of sentences, see `_sentences`."""
        self._texts = texts
        self._held_out = held_out
        self._shared = 0

    def __call__(self) -> Iterator[tuple[str, str]]:
        shared = 0
        streams = (_placed(text, number) for number, text in enumerate(self._texts))
        for _, _, pair in heapq.merge(*streams, key=itemgetter(0, 1)):
            if self._held_out.isdisjoint(_sentences([pair])):
                yield pair
            else:
                shared += 1
        self._shared = shared

    def text(self, name: str) -> ParallelText:
        return ParallelText(name, self, left_out=self._left_out)

    def _left_out(self) -> dict[str, int]:
        return {"held out by another of them": self._shared} if self._shared else {}


def _placed(text: ParallelText, number: int) -> Iterator[tuple[float, int, tuple[str, str]]]:
    """The pairs of a text behind their places in it, from 0 to 1, and the number of the text."""
    kept = text.check().kept
    return ((place / kept, number, pair) for place, pair in enumerate(text))


def _sentences(pairs: Iterable[tuple[str, str]]) -> set[int]:
    """Hashes of all sources and targets; a source and a target are never alike."""
    return {hash((side, text.casefold())) for pair in pairs for side, text in enumerate(pair)}
