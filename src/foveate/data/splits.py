"""Which examples of a text to hold out, and which pairs, so that nothing that is held out is seen in training."""

from array import array
from collections.abc import Callable, Iterable
from hashlib import blake2b
from random import Random
from typing import Literal

import numpy as np

Side = Literal["train", "dev", "test"]

LARGEST_GROUP = 100
"""Pairs of the largest group that can be held out: a larger one would be most of what is held out."""


PARTS = 16
"""Parts in which the hashes of a text are sorted, one after the other."""


def one_in(every: int) -> Callable[[int], bool]:
    """Returns whether a number (from 1) is the one that is drawn of its span of `every` numbers.

    Which one is drawn, the same each time, since files often repeat a pattern.
    """

    def drawn(number: int) -> bool:
        span, place = divmod(number - 1, every)
        return Random(span).randrange(every) == place

    return drawn


def within(outer: Callable[[int], bool] | None, inner: Callable[[int], bool]) -> Callable[[int], bool]:
    """Returns whether a number is kept by the part of a text and by the part that is made of it; None keeps all."""
    return inner if outer is None else lambda number: outer(number) and inner(number)


def together(texts: Iterable[str], every: int) -> Callable[[int], bool]:
    """As `one_in`, for the number of each text; texts that are the same, in any letter case, are drawn together.

    The first of them decides. Where they are more than one in `every` by themselves, each is drawn for itself.
    """
    hashes = np.fromiter((_hashed(text.casefold()) for text in texts), np.uint64)
    deciding = np.empty(len(hashes), np.int64)
    for part in range(PARTS):  # what is sorted is a part of a large text
        own = np.flatnonzero(hashes % PARTS == part)
        _, firsts, groups, sizes = np.unique(hashes[own], return_index=True, return_inverse=True, return_counts=True)
        first = own[firsts] + 1
        deciding[own] = np.where(sizes * every > max(every, len(hashes)), 0, first)[groups]
    drawn = one_in(every)
    return lambda number: drawn(int(deciding[number - 1]) or number)


def sides(pairs: Iterable[tuple[str, str]], held_out: float) -> list[Side]:
    """The side of each pair: about `held_out` of them for dev, as many for test.

    Pairs that share a source or a target, in any letter case, directly or through other pairs, are on one side. Which
    one depends on no order and no seed, only on the pairs that share a text. `pairs` are read twice and never held.
    """
    drawn = draws(pairs)
    return np.select([drawn < held_out, drawn < 2 * held_out], ["test", "dev"], "train").tolist()


def draws(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """A number from 0 to 1 for each pair, evenly spread, and the same for all pairs that share a text (see `sides`).

    It comes from the first source, in alphabetical order, of these pairs. The largest groups of them draw 1.
    """
    groups = _groups(pairs)
    sizes = np.bincount(groups)
    drawn = np.ones(len(sizes))
    firsts: dict[int, str] = {}
    for group, (source, _) in zip(groups.tolist(), pairs, strict=True):
        source = source.casefold()
        if sizes[group] == 1:
            drawn[group] = _hashed(source) / 2**64
        elif sizes[group] <= LARGEST_GROUP:
            firsts[group] = min(source, firsts.get(group, source))
    for group, first in firsts.items():
        drawn[group] = _hashed(first) / 2**64
    return drawn[groups]


def _groups(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """The number of the group that each pair belongs to: the union-find algorithm, over hashes of the texts."""
    hashes = array("Q")
    for source, target in pairs:
        # a word of one language is not the same word of another
        hashes.extend((_hashed(source.casefold()), _hashed(target.casefold()) ^ 1))
    if not hashes:
        return np.zeros(0, np.int64)
    texts, numbers = np.unique(np.frombuffer(hashes, np.uint64), return_inverse=True)
    parents = array("q", range(len(texts)))

    def root(text: int) -> int:
        while parents[text] != text:
            parents[text] = parents[parents[text]]
            text = parents[text]
        return text

    links = numbers.reshape(-1, 2)
    for number, partner in links.tolist():
        parents[root(partner)] = root(number)
    roots = np.fromiter(map(root, links[:, 0].tolist()), np.int64, len(links))
    return np.unique(roots, return_inverse=True)[1]


def _hashed(text: str) -> int:
    """A number below 2^64; Python's own hash() differs from run to run."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
