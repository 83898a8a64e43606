"""Which examples of a dataset to hold out, and which pairs, so that nothing that is held out is seen in training."""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, pairwise
from random import Random
from typing import Literal, NamedTuple

import numpy as np

Side = Literal["train", "dev", "test"]

LARGEST_GROUP = 100
"""Pairs of the largest group that can be held out: a larger one would be most of what is held out."""

RULE = 2
"""Changes when other examples are held out: a training is not resumed with others."""

COPY = "copy"
"""The tie of examples with the same content. All other ties are named by what the examples share."""

ORIGINS = ("document", "speaker")
"""The ties of examples that come from one place: they are alike, whatever their content is."""

LARGEST_SHARE = 5
"""A group of more than one in this many of the examples is not held out whole."""

ORIGINS_EVERY = 20
"""At least one in this many documents or speakers is held out: each may be unlike the others."""

Ties = Mapping[str, Hashable]
"""What an example shares with others, by the name of the tie."""


class HeldOut(NamedTuple):
    """Which examples are held out, and what to tell the user about them."""

    held: np.ndarray
    """For each example, whether it is held out (N,)."""
    copies: int
    """Examples whose content an earlier one has."""
    notes: tuple[str, ...]
    """For each other tie, on how many sides its groups are."""


def hold_out(
    ties: Iterable[Ties], every: int, kinds: Iterable[Collection[Hashable]] = (), rare: bool = False
) -> HeldOut:
    """About one in `every` examples; those that share a tie, directly or through others, are on one side.

    Larger groups than one in `LARGEST_SHARE` stay in training where the others suffice. Where they do not, they are
    taken apart, but for copies; of these the smallest is then held out, if it is not more than half of all. The last
    example of a kind, such as a label, is never held out; with `rare`, it may be, where nothing else can. Which
    examples are drawn is the same each time.
    """
    shared = _hashes(ties)
    cases = _Cases(kinds)
    count = len(shared[COPY])
    groups, small = _whole_groups(shared, every)
    if any(len(np.unique(column)) < count for name, column in shared.items() if name in ORIGINS):
        every = min(every, ORIGINS_EVERY)
    held = _draw(groups, small, every, cases)
    if rare and not held.any():
        held = _draw(groups, small, every, _Cases(()))
    notes = [note for name, column in shared.items() if name != COPY and (note := _sides_of(name, column, held))]
    return HeldOut(held, count - len(np.unique(shared[COPY])), tuple(notes))


def _hashes(ties: Iterable[Ties]) -> dict[str, np.ndarray]:
    """For each tie a number for each example, the same for those that share it; a number of its own without one."""
    found: dict[str, array[int]] = {COPY: array("Q")}
    count = 0
    for count, own in enumerate(ties, 1):
        for name in sorted(own.keys() - found.keys()):
            found[name] = array("Q", range(count - 1))
        for name, column in found.items():
            column.append(_hashed(repr(own[name])) if own.get(name) is not None else count - 1)
    return {name: np.array(column, np.uint64) for name, column in found.items()}


def _whole_groups(shared: Mapping[str, np.ndarray], every: int) -> tuple[np.ndarray, int]:
    """The number of each example's group, and of the first one that is too large.

    Before it, groups are in the order of their first examples; from it on, the smallest comes first.
    """
    groups = _connected([*shared.values()])
    count, most = len(groups), _most(len(groups), every)
    sizes = np.bincount(groups, minlength=1)[groups]
    if (sizes <= most).sum() < 2 * count / every:
        copies = groups.max(initial=0) + 1 + _in_order(shared[COPY])
        groups = _in_order(np.where(sizes > most, copies, groups))
        sizes = np.bincount(groups, minlength=1)[groups]
    places = np.empty(count, np.int64)
    places[np.lexsort((np.arange(count), np.where(sizes > most, sizes, 0)))] = np.arange(count)
    _, firsts = np.unique(groups, return_index=True)
    numbers = np.argsort(np.argsort(places[firsts]))
    small = int((sizes[firsts] <= most).sum())
    return numbers[np.unique(groups, return_inverse=True)[1]], small


def _most(count: int, every: int) -> int:
    """The most examples that are held out of this many."""
    return max(1, -(-count // min(every, LARGEST_SHARE)))


def _draw(groups: np.ndarray, small: int, every: int, cases: "_Cases") -> np.ndarray:
    """Holds out one in `every` of the `small` groups, and others where these have too few examples, in the end a larger
    one of at most half of all."""
    held = np.zeros(len(groups), bool)
    order, ends = np.argsort(groups, kind="stable"), np.cumsum([0, *np.bincount(groups)])
    left, total, most = cases.counts(), 0, _most(len(groups), every)
    larger = range(small, len(ends) - 1)
    for group, further in chain(_drawn_groups(small, every), ((group, True) for group in larger)):
        if further and 2 * total * every >= len(groups):
            break
        members = order[ends[group] : ends[group + 1]]
        own = cases.of(members)
        fits = total + len(members) <= (most if group < small else len(groups) // 2)
        if fits and all(left[kind] > times for kind, times in own.items()):
            held[members] = True
            total += len(members)
            left -= own
    return held


def _drawn_groups(count: int, every: int) -> Iterator[tuple[int, bool]]:
    """The groups that are drawn, one of each span of `every`; then all others, which are further ones."""
    spans = (span * every + Random(span).randrange(every) for span in range(-(-count // every)))
    drawn = [group for group in spans if group < count]
    yield from ((group, False) for group in drawn)
    known = set(drawn)
    yield from ((group, True) for group in Random(count).sample(range(count), count) if group not in known)


def _sides_of(name: str, column: np.ndarray, held: np.ndarray) -> str:
    """A note on the examples that share a tie; empty where none do, or all."""
    values, own = np.unique(column, return_inverse=True)
    if len(values) in (1, len(column)):
        return ""
    counts = [np.bincount(own[side], minlength=len(values)) for side in (held, ~held)]
    both = int(np.logical_and(*counts).sum())
    if not both:
        return f"{len(values):,} {name}s, each on one side"
    return f"{both:,} of {len(values):,} {name}s are on both sides: give --validation for others"


class _Cases:
    """The kinds that each example is a case of, as numbers."""

    def __init__(self, kinds: Iterable[Collection[Hashable]]) -> None:
        numbers: dict[Hashable, int] = {}
        self._kinds, self._ends = array("q"), array("q", [0])
        for own in kinds:
            self._kinds.extend(numbers.setdefault(kind, len(numbers)) for kind in own)
            self._ends.append(len(self._kinds))

    def counts(self) -> Counter[int]:
        """The number of examples of each kind."""
        return Counter(self._kinds)

    def of(self, members: np.ndarray) -> Counter[int]:
        """The same of some examples."""
        places = members.tolist() if self._kinds else ()
        return Counter(kind for place in places for kind in self._kinds[self._ends[place] : self._ends[place + 1]])


def _in_order(numbers: np.ndarray) -> np.ndarray:
    """Numbers from 0 on for the same values, in the order in which these come."""
    _, firsts, own = np.unique(numbers, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[own]


def _connected(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The number of the group of each example: those with the same value in a column are in one, directly or through
    others. The union-find algorithm."""
    numbers, total = [], 0
    for column in columns:
        values, own = np.unique(column, return_inverse=True)
        if len(values) < len(own):  # else nothing is shared
            numbers.append(own + total)
            total += len(values)
    if len(numbers) <= 1:
        return numbers[0] if numbers else np.arange(len(columns[0]))
    parents = array("q", range(total))

    def root(value: int) -> int:
        while parents[value] != value:
            parents[value] = parents[parents[value]]
            value = parents[value]
        return value

    for firsts, others in pairwise(numbers):
        for first, other in zip(firsts.tolist(), others.tolist(), strict=True):
            parents[root(other)] = root(first)
    roots = np.fromiter(map(root, numbers[0].tolist()), np.int64, len(numbers[0]))
    return np.unique(roots, return_inverse=True)[1]


def within(outer: Callable[[int], bool] | None, inner: Callable[[int], bool]) -> Callable[[int], bool]:
    """Returns whether a number is kept by the part of a text and by the part that is made of it; None keeps all."""
    return inner if outer is None else lambda number: outer(number) and inner(number)


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
    """The number of the group that each pair belongs to; a word of one language is not the same word of another."""
    hashes = array("Q")
    for source, target in pairs:
        hashes.extend((_hashed(source.casefold()), _hashed(target.casefold())))
    return _connected([*np.array(hashes, np.uint64).reshape(-1, 2).T])


def _hashed(text: str) -> int:
    """A number below 2^64; Python's own hash() differs from run to run."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
