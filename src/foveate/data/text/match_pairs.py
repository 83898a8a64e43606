"""Right and wrong pairs of texts, to learn whether two belong together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from foveate.contracts import Batch
from foveate.data.ragged import Numbers
from foveate.errors import UserError

WRONG, RIGHT = 0, 1
"""The labels of pairs."""


class Judged(NamedTuple):
    """A pair, and whether its texts belong together."""

    source: str
    target: str
    right: bool


class MatchBatch(Batch):
    """A batch of which a part takes along the targets of its wrong pairs, behind its own."""

    def select(self, chosen: slice) -> "MatchBatch":
        """Some of the pairs alone, each right and wrong."""
        others = self.inputs["others"][chosen]
        targets = torch.cat([torch.arange(len(self.labels))[chosen], others])
        inputs = {name: self.inputs[name][chosen] for name in ("source", "source_lengths")}
        inputs |= {name: self.inputs[name][targets] for name in ("target", "target_lengths")}
        inputs["others"] = torch.arange(len(others), len(targets))
        return MatchBatch(inputs, {"labels": self.labels[chosen]}, self.weight[chosen], self.source)


def judged_pairs(pairs: Sequence[tuple[str, str]], seed: int) -> list[Judged]:
    """The pairs, and as many wrong ones with targets of about the same length, but for those that are right after all;
    to measure on. Raises UserError where that are all."""
    others = partners(np.array([len(target) for _, target in pairs]), np.random.default_rng(seed))
    drawn = [(source, pairs[other][1]) for (source, _), other in zip(pairs, others, strict=True)]
    known = set(pairs)
    wrong = [Judged(*pair, False) for pair in drawn if pair not in known]
    if not wrong:
        raise UserError(f"no wrong pair can be made of {len(pairs)}: give more pairs, of which the targets differ")
    return [Judged(*pair, True) for pair in pairs] + wrong


def partners(lengths: Numbers, generator: np.random.Generator) -> Numbers:
    """For each place another one of about the same length, each named once: the next in the order of length, which is
    random among equals; after the last comes the first. A single place is its own partner."""
    order = np.lexsort((generator.random(len(lengths)), lengths))
    found = np.empty_like(order)
    found[order] = np.roll(order, -1)
    return found
