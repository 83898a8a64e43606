"""Batches of whole texts to answer about."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from foveate.contracts import Tokenizer
from foveate.data.ragged import Numbers, RaggedArray, padded, within_budget
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.special_tokens import SpecialTokens


def surroundings(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before and after a text that is read as a whole."""
    if isinstance(tokenizer, TextTokenizer):
        return tokenizer.begin, tokenizer.end
    return (tokenizer.special.start,), ()


def text_batches(
    texts: Sequence[Sequence[int]], tokenizer: Tokenizer, tokens: int
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to decide about: the places of their texts in the list, and the inputs of `text_inputs`.

    Longest first; rows times longest row stay within `tokens`, and a text longer than that comes alone.
    """
    begin, end = surroundings(tokenizer)
    rows = RaggedArray([[*begin, *text, *end] for text in texts])
    longest_first = np.argsort(-rows.lengths, kind="stable")
    for group in within_budget(longest_first, rows.lengths, tokens):
        yield group.tolist(), text_inputs(rows.take(group), tokenizer.special)


def text_inputs(texts: Sequence[Numbers], special: SpecialTokens) -> dict[str, Tensor]:
    """`tokens` (B, T), padded, and `lengths` (B,) of texts with what surrounds them."""
    tokens, lengths = padded(texts, special.pad)
    return {"tokens": tokens, "lengths": lengths}
