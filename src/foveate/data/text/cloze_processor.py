"""Texts become rows of tokens, some of which are hidden."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foveate.config import from_dict
from foveate.contracts import Batch, Tokenizer
from foveate.data.dataset import Dataset
from foveate.data.processor import PROCESSOR, Processor
from foveate.data.ragged import Numbers
from foveate.data.text.documents import Passage
from foveate.data.text.masking import Hiding, Masked, encode_question
from foveate.data.text.neighbours import BothWays
from foveate.data.text.packing import TokenRow, stream_rows
from foveate.data.text.permutation import Permuted
from foveate.data.text.token_shards import Row, keep_rows, rows_key
from foveate.data.tokens.characters import OpenVocabulary
from foveate.data.tokens.tokenizers import SubwordTokenizer, load_tokenizer
from foveate.errors import one_of
from foveate.files import read_json

TOKENIZER = "tokenizer.json"

HIDING: dict[str, Callable[[Any, float], Hiding]] = {
    "masked": lambda tokenizer, share: Masked(tokenizer.special, len(tokenizer), share),
    "permuted": lambda tokenizer, share: Permuted(tokenizer.special, share),
    "both ways": lambda tokenizer, share: BothWays(tokenizer),
}
"""The ways to hide words, by name; each is made from the tokenizer and the share that is hidden."""

OF_CHARACTERS = ("both ways",)
"""Those of models that read words by their characters; the vocabulary is of whole words."""


@dataclass
class _Saved:
    hiding: str
    share: float


def _to_keep(row: TokenRow) -> Row:
    """A row for a file: with its unknown words before its place."""
    return row.tokens, len(row.words), "\n".join([*row.words, row.place])


def _kept(tokens: Numbers, words: int, text: str) -> TokenRow:
    *unknown, place = text.split("\n", words)
    return TokenRow(place, tokens, tuple(unknown))


@dataclass
class ClozeProcessor(Processor[TokenRow]):
    """Hides tokens of rows, and reads texts in which users have hidden words."""

    tokenizer: Tokenizer
    hiding: str
    """A name of `HIDING`."""
    share: float = 0.15
    """Share of the words that are hidden."""

    def __post_init__(self) -> None:
        one_of("hiding", self.hiding, HIDING)
        if self.hiding in OF_CHARACTERS and isinstance(self.tokenizer, SubwordTokenizer):
            self.tokenizer = OpenVocabulary(self.tokenizer)

    @property
    def way(self) -> Hiding:
        return HIDING[self.hiding](self.tokenizer, self.share)

    def keep(self, passages: Dataset[Passage], watched: Iterable[Passage], length: int) -> Dataset[TokenRow]:
        """The passages, which are read from `watched`, packed into rows of `length` tokens: of a large text in files of
        the cache, which a later training on the same text finds there."""
        rows = keep_rows(
            lambda: map(_to_keep, stream_rows(watched, self.tokenizer, length)),
            _kept,
            rows_key(passages, self.tokenizer, length, *(["words"] if self.hiding in OF_CHARACTERS else [])),
        )
        return Dataset(passages.name, rows, "rows")

    def prepare(self, dataset: Dataset[TokenRow]) -> Sequence[TokenRow]:
        return dataset.examples

    def cost(self, prepared: TokenRow) -> int:
        return len(prepared.tokens)

    def batch(self, prepared: Sequence[TokenRow], generator: np.random.Generator | None) -> Batch:
        if not isinstance(self.tokenizer, OpenVocabulary):
            return self.way.hide([row.tokens for row in prepared], generator)
        words = self.tokenizer.anew()  # numbers for the words of this batch, which another thread may not need
        way = HIDING[self.hiding](words, self.share)
        return way.hide([words.opened(row.tokens, row.words) for row in prepared], generator)

    def question(self, text: str) -> tuple[list[int], list[int]]:
        """The tokens of a text, and where its masks are among them."""
        return encode_question(text, self.tokenizer)

    def targets(self, row: TokenRow) -> list[int]:
        """The tokens of a row, without the start token."""
        return row.tokens[1:].tolist()

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    def files(self) -> dict[str, Callable[[Path], object]]:
        text = json.dumps({"hiding": self.hiding, "share": self.share})
        return {TOKENIZER: self.tokenizer.save, PROCESSOR: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "ClozeProcessor":
        saved = from_dict(_Saved, read_json(folder / PROCESSOR), str(folder / PROCESSOR))
        return cls(load_tokenizer(folder / TOKENIZER), saved.hiding, saved.share)
