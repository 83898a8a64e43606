"""Batches of sentences to translate."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from foveate.data.ragged import Numbers, RaggedArray, padded, within_budget
from foveate.special_tokens import SpecialTokens

_FEW = 16
"""Batches for each of those who share them, from which on it no longer matters who takes the last one."""


def source_batches(
    sentences: Sequence[Sequence[int]], special: SpecialTokens, tokens: int, at_once: int = 1
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to translate: the places of their sentences in the list, and `source` (B, S) with `source_lengths` (B,).

    Longest first, so that what does not fit into memory shows at once; rows times longest row stay within `tokens`,
    and a sentence longer than that comes alone. Where it takes several batches, they are made to come out even for
    those who take `at_once` of them at a time.
    """
    rows = RaggedArray([[*sentence, special.end] for sentence in sentences])
    longest_first = np.argsort(-rows.lengths, kind="stable")
    for group in _even(longest_first, rows.lengths, tokens, at_once):
        source, lengths = padded(rows.take(group), special.pad)
        yield group.tolist(), {"source": source, "source_lengths": lengths}


def _even(order: Numbers, lengths: Numbers, budget: int, at_once: int) -> list[Numbers]:
    """As `within_budget`; of few groups so many, and so even, that all who take one at a time have as much to do."""
    groups = within_budget(order, lengths, budget)
    if not 1 < len(groups) <= _FEW * at_once or at_once == 1:
        return groups
    wanted = math.ceil(len(groups) / at_once) * at_once
    least = bisect_left(range(budget), True, key=lambda less: len(within_budget(order, lengths, less)) <= wanted)
    return within_budget(order, lengths, least)
