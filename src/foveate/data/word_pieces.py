"""Words as the pieces of a language model's vocabulary, for taggers that begin from one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from foveate.contracts import END, PAD, START, UNKNOWN, Tokenizer
from foveate.data.bert_tokenizer import BertTokenizer
from foveate.data.lexicon import Lexicon
from foveate.data.rows import Numbers, Rows, padded


class PieceSentences:
    """Sentences as rows of pieces, and where each word begins in its row. Each distinct word is cut once."""

    def __init__(self, sentences: Iterable[Sequence[str]], tokenizer: Tokenizer) -> None:
        sentences = list(sentences)
        words = list({word: None for sentence in sentences for word in sentence})
        cut = dict(zip(words, tokenizer.encode(words), strict=True))
        own = isinstance(tokenizer, BertTokenizer)
        begin, end = (tokenizer.begin, tokenizer.end) if isinstance(tokenizer, BertTokenizer) else ((START,), (END,))
        self._fill = 0 if own else PAD
        rows, places = [], []
        for sentence in sentences:
            pieces = [cut[word] or [UNKNOWN] for word in sentence]
            ends = np.cumsum([len(begin), *map(len, pieces)])
            places.append(ends[:-1].tolist())
            rows.append([*begin, *(piece for word in pieces for piece in word), *end])
        self.rows, self._places = Rows(rows), Rows(places)

    def inputs(self, rows: Numbers) -> dict[str, Tensor]:
        """What a model reads: `tokens` (B, T), `lengths` (B,), and the `places` (B, W) where words begin."""
        tokens, lengths = padded(self.rows.take(rows), self._fill)
        return {"tokens": tokens, "lengths": lengths, "places": padded(self._places.take(rows), 0)[0]}


@dataclass(frozen=True)
class PieceLexicon(Lexicon):
    """What a tagged text says about words, which a model reads by their pieces."""

    tokenizer: Tokenizer = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, lexicon: Lexicon, tokenizer: Tokenizer) -> "PieceLexicon":
        return cls(lexicon.words, lexicon.repeated, lexicon.tags, tokenizer=tokenizer)

    @property
    def vocabulary(self) -> int:
        return len(self.tokenizer)

    def sentences(self, sentences: Iterable[Sequence[str]]) -> PieceSentences:
        return PieceSentences(sentences, self.tokenizer)
