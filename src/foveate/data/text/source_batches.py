"""Batches of sentences to translate."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from foveate.data.ragged import RaggedArray, even_groups, padded
from foveate.special_tokens import SpecialTokens


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
    for group in even_groups(longest_first, rows.lengths, tokens, at_once):
        source, lengths = padded(rows.take(group), special.pad)
        yield group.tolist(), {"source": source, "source_lengths": lengths}
