"""Texts that are read as a whole, to decide about them.

B batch    T tokens of a text, with those around it
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from foveate.data.buckets import Bucket, Buckets
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded, tokenised
from foveate.data.text.batches import surroundings
from foveate.data.text.strided_buckets import MOST_ROWS
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.data.tokens.tokenizers import TRAINERS, Tokens
from foveate.errors import UserError
from foveate.forms.form import Changes, Learned
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.read_text import ReadText
from foveate.forms.written import check_vocabulary

FEW = 1000
"""Where there are fewer texts, a network from nothing is hardly better than guessing (docs/small-data.md)."""


@dataclass
class Text(ReadText):
    """A text, with a start token or between the two of a BERT: inputs `tokens` (B, T) and `lengths` (B,)."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    worth_optimizing: ClassVar[float] = math.inf
    start_sign: ClassVar[str] = "<start>"

    tokens: Tokens = "words"
    """What a text is cut into."""
    vocabulary: int = 8000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read lower case only."""
    max_length: int = 512
    """Texts with more tokens than this, or than the model has positions for, are left out (and counted)."""
    tokenizer: Learned[Any] = None

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)

    def check_training(self, model: nn.Module, batch: int) -> None:
        """Any length fits: what is too long is left out."""

    def check_learned(self) -> None:
        if self.tokenizer is None:
            raise UserError(f"{self.saved_apart['tokenizer']} is missing")

    def texts(self, train: Dataset[Any]) -> Iterator[str]:
        """The texts that a vocabulary is learned from."""
        return (self.value(example) for example in train)

    def learn(self, train: Dataset[Any], architecture: Any) -> Any:
        """With a vocabulary of the texts, unless trained weights brought theirs."""
        found = copy(self)
        if found.tokenizer is None:
            found.tokenizer = TRAINERS[self.tokens](self.texts(train), self.vocabulary, self.lowercase)
        if getattr(architecture, "positions", None) == "learned":
            found.max_length = min(self.max_length, architecture.max_length - sum(map(len, found.around)))
        return found

    def advice(self, train: Dataset[Any], begun: bool) -> list[str]:
        """Where texts are few and nothing is known of words: trained weights, which know them."""
        if begun or len(train) >= FEW:
            return []
        return [f"{len(train):,} texts are few to learn words from; English ones are better learned --from minilm"]

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        return surroundings(self.words)

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.words)}

    @property
    def summary(self) -> str:
        return f"{len(self.words):,} {self.tokens}"

    def value(self, example: Any) -> str:
        return str(example.text)

    def group(self, example: Any) -> Hashable:
        return self.value(example).casefold()

    def buckets(self, train: Dataset[Any], processor: Processor) -> Buckets:
        """Of the texts with at most `max_length` tokens, which are read once, in pieces. Raises UserError where there
        is none."""
        texts = ((self.value(example), (processor.writes.prepare(example)[0], example.place)) for example in train)
        rows, known, read = tokenised(texts, self.words, *self.around, self.max_length)
        if not known:
            raise nothing_fits(train, read, f"{self.max_length:,} tokens")
        tokens = rows.take(np.arange(len(known)))
        prepared = [PreparedExample(own, target) for own, (target, _) in zip(tokens, known, strict=True)]
        left_out = f"{read - len(known):,} of {read:,} {train.unit} left out"
        report = f"{train.name}: {left_out} for more than {self.max_length:,} tokens"
        return PreparedBuckets(train.name, prepared, [place for _, place in known], processor, report)

    def tensors(
        self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        tokens, lengths = padded(prepared, self.words.special.pad)
        return {"tokens": tokens, "lengths": lengths}, Changes()

    def names(self, prepared: np.ndarray) -> list[str]:
        before, _ = self.around
        if isinstance(self.words, TextTokenizer):  # whose special tokens have names of their own
            return self.words.pieces(prepared.tolist())
        return [self.start_sign, *self.words.pieces(prepared[len(before) :].tolist())]


def nothing_fits(train: Dataset[Any], read: int, limit: str) -> UserError:
    """The error for examples of which each is too long."""
    return UserError(f"{train.name}: each of the {read:,} {train.unit} has more than {limit}; raise max_length")


class PreparedBuckets:
    """Examples in memory as numbers, in one bucket, or in several where they are many: each has every n-th of them."""

    def __init__(
        self, name: str, prepared: Sequence[PreparedExample], places: Sequence[str], processor: Processor, report: str
    ) -> None:
        self.report = report
        self._name, self._prepared, self._places, self._processor = name, prepared, places, processor
        self.largest = max((bucket.largest for bucket in self), key=lambda largest: largest[0])

    def __iter__(self) -> Iterator[Bucket[Any]]:
        for number in range(len(self)):
            own, places = self._prepared[number :: len(self)], self._places[number :: len(self)]
            yield Bucket(own, self._processor, self._name, places.__getitem__)

    def __len__(self) -> int:
        return -(-len(self._prepared) // MOST_ROWS)
