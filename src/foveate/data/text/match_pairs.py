"""Right and wrong pairs of texts, to learn whether two belong together."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import IGNORE, Batch, count_labels
from foveate.data.ragged import Numbers, RaggedArray, padded, within_budget
from foveate.errors import UserError
from foveate.special_tokens import SpecialTokens

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


def with_wrong_pairs(batch: Batch, fill: int, generator: np.random.Generator) -> MatchBatch:
    """A batch of right pairs as inputs and labels to tell them from wrong ones; `fill` pads the targets."""
    source, target = batch.inputs["source"], batch.labels.masked_fill(batch.labels == IGNORE, fill)
    others = torch.from_numpy(partners(batch.inputs["target_lengths"].numpy(), generator))
    known = set(_keys(source, target))
    right_after_all = torch.tensor([key in known for key in _keys(source, target[others])])
    right, wrong = torch.full_like(others, RIGHT), torch.where(right_after_all, IGNORE, WRONG)
    inputs = {**batch.inputs, "target": target, "others": others}
    labels = torch.stack([right, wrong], 1)
    return MatchBatch(inputs, {"labels": labels}, count_labels(labels), batch.source)


def _keys(source: Tensor, target: Tensor) -> Iterator[tuple[bytes, bytes]]:
    """Something to know each pair of texts by."""
    return ((first.tobytes(), second.tobytes()) for first, second in zip(source.numpy(), target.numpy(), strict=True))


def match_inputs(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    special: tuple[SpecialTokens, SpecialTokens],
    tokens: int,
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to judge: the places of their pairs in the lists, and the inputs as of `MatchProcessor`.

    Longest first; on either side rows times longest row stay within `tokens`, and a pair longer than that comes alone.
    """
    sides = [
        RaggedArray([[*text, own.end] for text in texts])
        for own, texts in zip(special, (sources, targets), strict=True)
    ]
    lengths = np.maximum(*(rows.lengths for rows in sides))
    for group in within_budget(np.argsort(-lengths, kind="stable"), lengths, tokens):
        inputs = {}
        for name, rows, own in zip(("source", "target"), sides, special, strict=True):
            inputs[name], inputs[f"{name}_lengths"] = padded(rows.take(group), own.pad)
        yield group.tolist(), inputs
