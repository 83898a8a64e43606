"""Sentences in one language that are read, and their translations that are written."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from torch import nn

from foveate.data.buckets import Buckets
from foveate.data.table import SOURCE, TEXT, Column
from foveate.data.text.batches import surroundings
from foveate.data.text.pair_buckets import PairBuckets, SideTokenizer, TokenPair
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.data.tokens.tokenizers import TRAINERS, PairTokens, join_pieces
from foveate.decoding import Decoding
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError, at_least
from foveate.forms.form import Learned
from foveate.forms.processor import PreparedExample, Processor, RowProcessor
from foveate.forms.read_text import ASKED, ReadText, unknown_note
from foveate.forms.written import WriteOptions, Written, WrittenAnswer, check_vocabulary, require_tokenizer
from foveate.metrics.translation import check_tokenize, quality

SOURCE_TOKENIZER, TARGET_TOKENIZER = "source_tokenizer.json", "target_tokenizer.json"


@dataclass
class MeasureTranslations(WriteOptions):
    """How `foveate eval` measures translations."""

    groups: int = 4
    """Groups of source lengths to tell apart."""
    lowercase: bool = False
    """Compare in lower case."""
    tokenize: str = "auto"
    """What BLEU takes for a word: sacreBLEU's 13a, intl, char, zh or none, or moses-LANGUAGE, such as moses-fr. "auto"
    is 13a, or zh or char where the references are in a script without spaces."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        at_least(1, "groups", self.groups)
        check_tokenize(self.tokenize)


@dataclass
class SourceText(ReadText):
    """The sentence to translate, with its end. Examples are pairs of texts."""

    columns: ClassVar[tuple[Column, ...]] = (SOURCE._replace(titles=(*SOURCE.titles, TEXT.name, *TEXT.titles)),)
    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": SOURCE_TOKENIZER}

    tokens: PairTokens = "subwords"
    """What a sentence is cut into. By characters it is long: give --max-length, too. Pieces are those of a text that
    was cut before, with @@ behind each that goes on ("Was@@ ser"): what is written is joined to words."""
    vocabulary: int = 8000
    """How many of them to learn, at most, of both languages together or (not shared) of each."""
    shared: bool = True
    """One vocabulary for both languages."""
    lowercase: bool = False
    """Read and write lower case only."""
    tokenizer: Learned[Any] = None

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def check_training(self, model: nn.Module, batch: int) -> None:
        super().check_training(model, batch)
        if batch <= self.max_length:
            raise UserError(
                f"a batch of {batch:,} tokens cannot hold one sentence of {self.max_length:,} and its end: raise "
                f"--batch or lower --max-length"
            )
        if not self.shared and getattr(model.config, "tie", None) == "all":
            raise UserError(
                "tie='all' shares one embedding, but each language has a vocabulary of its own; "
                "share one vocabulary, or use tie='output'"
            )

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        return surroundings(self.words) if isinstance(self.words, TextTokenizer) else super().around

    def names(self, prepared: Any) -> list[str]:
        if isinstance(self.words, TextTokenizer):  # whose special tokens have names of their own
            return self.words.pieces(prepared.tolist())
        return super().names(prepared)

    def learn(self, train: Any, architecture: Any) -> "SourceText":
        found = copy(self)
        texts = chain.from_iterable(train) if self.shared else train.sources()
        found.tokenizer = self.train_tokenizer(texts)
        return found

    def train_tokenizer(self, texts: Any) -> Any:
        """A vocabulary learned from some texts."""
        return TRAINERS[self.tokens](texts, self.vocabulary, self.lowercase)

    def sizes(self) -> dict[str, int]:
        return {"src_vocab": len(self.words)}

    @property
    def summary(self) -> str:
        return ""

    def value(self, example: tuple[str, str]) -> str:
        return example[0]

    def warnings(self, name: str, examples: Sequence[tuple[str, str]]) -> list[str]:
        return super().warnings(f"{name}, source", examples)

    def buckets(self, train: Any, processor: Processor) -> Buckets:
        """Pairs are tokenized as they are streamed from disk."""
        target = processor.writes.tokenizer
        sides = SideTokenizer(self.words, *self.around), SideTokenizer(target, *processor.writes.around)
        return PairBuckets(train, RowProcessor(processor, split_pair), sides, self.max_length)

    def whole_words(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are read by people: pieces are joined."""
        return [join_pieces(text) for text in texts] if self.tokens == "pieces" else list(texts)


@dataclass
class Translation(Written):
    """The translation."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": TARGET_TOKENIZER}
    eval_options: ClassVar[type[Any]] = MeasureTranslations
    metric: ClassVar[str] = "bleu"
    thoroughness: ClassVar[int] = 4

    tokenizer: Learned[Any] = None
    unit: Learned[str] = "tokens"
    """What texts are cut into, for the user."""
    lowercase: Learned[bool] = False
    """Whether texts are lower-cased."""
    source_vocabulary: Learned[int] = 0
    """Entries of the source's vocabulary where it is another; 0 for a shared one."""
    rules: Learned[TokenRules | None] = None
    """What the folder that the model is from says of the tokens that may follow each other."""

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def learn(self, train: Any, reads: Any, architecture: Any) -> "Translation":
        found = copy(self)
        found.tokenizer = reads.tokenizer if reads.shared else reads.train_tokenizer(train.targets())
        found.unit, found.lowercase = reads.tokens, reads.lowercase
        found.source_vocabulary = 0 if reads.shared else len(reads.tokenizer)
        return found

    def sizes(self) -> dict[str, int]:
        return {"tgt_vocab": len(self.tokenizer)}

    @property
    def summary(self) -> str:
        source = f"{self.source_vocabulary:,} and " if self.source_vocabulary else ""
        return f"{source}{len(self.tokenizer):,} {self.unit}"

    @property
    def token_rules(self) -> TokenRules | None:
        return self.rules

    def texts(self, example: tuple[str, str]) -> Sequence[str]:
        return [example[1]]

    def warnings(self, name: str, examples: Sequence[tuple[str, str]]) -> list[str]:
        return unknown_note(f"{name}, target", self.tokenizer, (target for _, target in examples[:ASKED]))

    def cost(self, prepared: np.ndarray) -> int:
        return len(prepared) - 1

    def decidedness(self, heads: Any) -> float:
        """The ends of the sentences, where heads rest that have nothing to do, do not count."""
        return super().decidedness(heads[..., :-1])

    def validation_options(self, thorough: bool) -> MeasureTranslations:
        """By greedy search during training, in the end as asked."""
        decoding = self.decoding if thorough else Decoding(method="greedy")
        return MeasureTranslations(decoding, lowercase=self.lowercase)

    def metrics(self, answers: Sequence[WrittenAnswer], examples: Sequence[tuple[str, str]]) -> dict[str, float]:
        """BLEU and chrF, with the options' defaults."""
        return translation_metrics([one.text for one in answers], [target for _, target in examples])


def translation_metrics(
    found: Sequence[str], references: Sequence[str], lowercase: bool = False, tokenize: str = "auto"
) -> dict[str, float]:
    """BLEU and chrF."""
    scores = quality(found, references, lowercase, tokenize)
    return {"bleu": scores.bleu, "chrf": scores.chrf}


def split_pair(pair: TokenPair) -> PreparedExample:
    """The side that is read, and the one that is written."""
    return PreparedExample(*pair)
