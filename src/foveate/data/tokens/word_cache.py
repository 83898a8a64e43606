"""Tokens of words that were encoded before."""

from collections.abc import Sequence
from typing import Any

from foveate.data.tokens.library import encode

MOST_WORDS = 200_000
"""Words whose tokens are remembered: 50 MB."""


class WordCache:
    """Encodes what stands between spaces once. No token of the tokenizer may reach across a space."""

    def __init__(self, tokenizer: Any) -> None:
        """`tokenizer` is one of the `tokenizers` library."""
        self._tokenizer = tokenizer
        self._known = dict[str, list[int]]()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        if len(self._known) > MOST_WORDS:
            self._known = {}  # not cleared: another thread may be reading it
        rows, known = [text.split(" ") for text in texts], self._known
        new = list({word for row in rows for word in row if word not in known})
        found = encode(self._tokenizer, new, add_special_tokens=False) if new else []
        known.update((word, encoding.ids) for word, encoding in zip(new, found, strict=True))
        return [[token for word in row for token in known[word]] for row in rows]
