"""Splitting pairs for training, development and test so that nothing held out is seen in training."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from foveate.data.text import ParallelText

Side = Literal["train", "dev", "test"]


@dataclass(frozen=True)
class Splits:
    """A source's three parts."""

    train: ParallelText
    dev: ParallelText
    test: ParallelText


def sides(pairs: Sequence[tuple[str, str]], held_out: float) -> list[Side]:
    """The side of each pair: about `held_out` of them for dev, as many for test.

    Pairs that share a source or a target, in any letter case, directly or through other pairs, are on one side. Which
    one depends on no order and no seed, only on the pairs that share a text.
    """
    groups = _groups([(source.casefold(), target.casefold()) for source, target in pairs])
    return [_side(group, held_out) for group in groups]


def _groups(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """For each pair the first source, in alphabetical order, of the group it belongs to: the union-find algorithm."""
    parents: dict[tuple[str, str], tuple[str, str]] = {}

    def root(text: tuple[str, str]) -> tuple[str, str]:
        while parents.setdefault(text, text) != text:
            parents[text] = parents[parents[text]]
            text = parents[text]
        return text

    for source, target in pairs:
        # the smaller one leads, and "source" sorts before "target", so a group's root is its first source
        first, second = sorted((root(("source", source)), root(("target", target))))
        parents[second] = first
    return [root(("source", source))[1] for source, _ in pairs]


def _side(group: str, held_out: float) -> Side:
    # Python's own hash() differs from run to run
    share = int.from_bytes(blake2b(group.encode(), digest_size=8).digest()) / 2**64
    if share < held_out:
        return "test"
    return "dev" if share < 2 * held_out else "train"
