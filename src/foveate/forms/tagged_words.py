"""Sentences whose words are separated already, and a tag for each word.

B batch    W words of a sentence    T places of the model: words, or pieces of them    F features of a spelling
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output, count_labels
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset, Prepared
from foveate.data.ragged import Numbers, padded
from foveate.data.text.lexicon import SPELLINGS, Lexicon, load_lexicon, spelling
from foveate.data.text.scripts import split_words
from foveate.data.text.tagged import Tagged
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.tokenizers import TRAINERS
from foveate.errors import UserError, one_line
from foveate.forms.answers import Answer
from foveate.forms.balance import Balanced, class_metric, label_weights, one_answer
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Learned, MapRow, OutputForm
from foveate.forms.label_details import Decided, MeasureLabels
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.read_text import ASKED, ReadText, unknown_note
from foveate.forms.scored import ScoredForm, label_numbers
from foveate.forms.text import PreparedBuckets, nothing_fits
from foveate.metrics.classification import accuracy, macro_f1
from foveate.sight import Sight
from foveate.special_tokens import LEARNED
from foveate.viewer.protocol import Input

LEXICON, TOKENIZER = "lexicon.json", "tokenizer.json"

NO_WORD = 0
"""The row of the table of distinct words of what is not a word: padding."""

BESIDE = 3
"""Words that are shown on each side of a mistake."""

PIECES = 8000
"""Pieces of words that a BERT learns, at most, where there are no trained weights."""

Words = tuple[str, ...]


class SpelledSentence(NamedTuple):
    """A sentence as rows of a table of distinct words, four bytes a word."""

    words: Words
    table: Numbers
    """Number and spelling of each distinct word (N, 1 + F); the sentences of a dataset share it."""
    rows: Numbers
    """Of each word (W,)."""


class PieceSentence(NamedTuple):
    """A sentence as pieces of words."""

    words: Words
    tokens: Numbers
    """The pieces, with those around them (T,)."""
    places: Numbers
    """Where each word begins among them (W,)."""


@dataclass
class TaggedWords(ReadText):
    """Words, by their numbers and their spelling: inputs `tokens` (B, W), `lengths` (B,) and `spellings` (B, W, F).

    A BERT reads pieces of words instead: inputs `tokens` (B, T), `lengths` (B,) and `places` (B, W), where words begin.
    """

    saved_apart: ClassVar[Mapping[str, str]] = {"lexicon": LEXICON, "tokenizer": TOKENIZER}
    place_name: ClassVar[str] = "words"
    worth_optimizing: ClassVar[float] = float("inf")

    max_length: int = 128
    """Sentences with more words than this, or than the model has positions for, are left out (and counted)."""
    lexicon: Learned[Any] = None
    """A `Lexicon`: the words that are known."""
    tokenizer: Learned[Any] = None
    """What cuts words into pieces; None where words have numbers."""
    room: Learned[int] = 0
    """Positions that the model learns; 0 without a limit."""

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_lexicon(path) if name == "lexicon" else load_text_tokenizer(path)

    def check_training(self, model: nn.Module, batch: int) -> None:
        """Any length fits: what is too long is left out."""

    def check_learned(self) -> None:
        if self.lexicon is None:
            raise UserError(f"there is no {LEXICON}")

    def learn(self, train: Dataset[Tagged], architecture: Any) -> "TaggedWords":
        """With the words of the training text; pieces of them for a model that does not read spellings."""
        found = copy(self)
        found.lexicon = Lexicon.learn(train)
        if not hasattr(architecture, "spellings") and found.tokenizer is None:
            found.tokenizer = TRAINERS["subwords"]((" ".join(sentence.words) for sentence in train), PIECES, False)
        if getattr(architecture, "positions", None) == "learned":
            found.room = architecture.max_length
            found.max_length = min(self.max_length, architecture.max_length - sum(map(len, found.around)))
        return found

    def follow(self, trained: "TaggedWords") -> "TaggedWords":
        """Words keep the numbers that they had."""
        return replace(self, lexicon=self.lexicon.follow(trained.lexicon))

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens that are read before the pieces of words and behind them."""
        if self.tokenizer is None:
            return (), ()
        return (self.words.special.start,), (self.words.special.end,)

    def sizes(self) -> dict[str, int]:
        if self.tokenizer is not None:
            return {"vocabulary": len(self.words)}
        return {"vocabulary": self.lexicon.vocabulary, "spellings": SPELLINGS}

    @property
    def summary(self) -> str:
        if self.tokenizer is not None:
            return f"{len(self.words):,} pieces of words"
        known = f"{self.lexicon.repeated:,} words of {len(self.lexicon.words):,} known by themselves"
        return f"{known}, the others by their spelling"

    def open(self, given: str) -> Words | None:
        """Words (punctuation marks too) that spaces separate; None without any."""
        return tuple(split_words(given)) or None

    def receive(self, given: Input, name: str) -> Words:
        return tuple(split_words(super().receive(given, name)))

    def size(self, value: Any) -> int:
        """Whole words are cut off."""
        return len(value)

    def part(self, value: Any, count: int) -> Any:
        return value[:count]

    def value(self, example: Tagged) -> Words:
        return example.words

    def place(self, example: Tagged) -> str:
        return " ".join(example.words)

    def group(self, example: Tagged) -> Hashable:
        return self.place(example).casefold()

    def warnings(self, name: str, examples: Sequence[Tagged]) -> list[str]:
        if self.tokenizer is None:
            return []
        return unknown_note(name, self.words, map(self.place, examples[:ASKED]))

    def buckets(self, train: Dataset[Tagged], processor: Processor) -> Buckets:
        """Of the sentences with at most `max_length` words that the model has positions for. Raises UserError where
        there is none."""
        prepared, places = [], []
        for example, own in zip(train, self._prepared([one.words for one in train]), strict=True):
            if len(own.words) <= self.max_length and (not self.room or self.positions(own) <= self.room):
                prepared.append(PreparedExample(own, processor.writes.prepare(example)[0]))
                places.append(example.place)
        limit = f"{self.max_length:,} words" + (f" or {self.room:,} positions" if self.room else "")
        if not prepared:
            raise nothing_fits(train, len(train), limit)
        left_out = f"{len(train) - len(prepared):,} of {len(train):,} {train.unit} left out"
        report = f"{train.name}: {left_out} for more than {limit}"
        return PreparedBuckets(train.name, prepared, places, processor, report)

    def prepare(self, value: Words) -> Any:
        return self._prepared([value])[0]

    def prepare_all(self, dataset: Dataset[Tagged]) -> Prepared:
        return Prepared(self._prepared([one.words for one in dataset]), range(len(dataset)))

    def _prepared(self, sentences: Sequence[Words]) -> Sequence[Any]:
        if self.tokenizer is None:
            return spelled(self.lexicon, sentences)
        return [
            PieceSentence(*each) for each in zip(sentences, *zip(*self._numbers(sentences), strict=True), strict=True)
        ]

    def _numbers(self, sentences: Sequence[Words]) -> list[tuple[Numbers, Numbers]]:
        """The pieces of each sentence, and where its words begin; each distinct word is cut once."""
        words = list({word: None for sentence in sentences for word in sentence})
        pieces = dict(zip(words, self.words.encode(words), strict=True))
        (before, behind), found = self.around, []
        for sentence in sentences:
            parts = [pieces[word] or [self.words.special.unknown] for word in sentence]
            ends = np.cumsum([len(before), *map(len, parts)])
            tokens = [*before, *chain.from_iterable(parts), *behind]
            found.append((np.array(tokens, np.int32), ends[:-1].astype(np.int32)))
        return found

    def cost(self, prepared: Any) -> int:
        return len(prepared.words if self.tokenizer is None else prepared.tokens)

    def positions(self, prepared: Any) -> int:
        return self.cost(prepared)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        if self.tokenizer is None:
            return spelling_inputs(prepared), Changes()
        tokens, lengths = padded([one.tokens for one in prepared], self.words.special.pad)
        places, _ = padded([one.places for one in prepared], 0)
        return {"tokens": tokens, "lengths": lengths, "places": places}, Changes()

    def longer_than_training(self, prepared: Any) -> bool:
        return len(prepared.words) > self.max_length

    def names(self, prepared: Any) -> list[str]:
        return [*prepared.words] if self.tokenizer is None else self.words.pieces(prepared.tokens.tolist())


def spelled(lexicon: Lexicon, sentences: Iterable[Words]) -> list[SpelledSentence]:
    """Sentences that share a table of their distinct words, each of which is worked out once."""
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers) + 1)
    rows = [(words, np.array([numbers[word] for word in words], np.int32)) for words in sentences]
    table = np.array([[LEARNED.pad, *spelling("")], *lexicon.rows(numbers)])
    return [SpelledSentence(words, table, own) for words, own in rows]


def spelling_inputs(prepared: Sequence[SpelledSentence]) -> dict[str, Tensor]:
    """The inputs of a model of words; the sentences may be of several tables."""
    tables = {id(one.table): one.table for one in prepared}
    begins = dict(zip(tables, np.cumsum([0, *map(len, tables.values())]).tolist(), strict=False))
    places, lengths = padded([one.rows + begins[id(one.table)] for one in prepared], NO_WORD)
    found = torch.from_numpy(np.concatenate([*tables.values()]))[places]
    return {"tokens": found[..., 0], "lengths": lengths, "spellings": found[..., 1:]}


@dataclass(kw_only=True)
class TagsAnswer(Answer):
    """A sentence's words and the tag of each."""

    words: Sequence[str] = ()
    tags: Sequence[str] = ()
    places: Sequence[int] = field(default=(), repr=False)
    """Where each word begins, in the places of the model."""
    shares: Sequence[float] = field(default=(), repr=False, compare=False)
    """The probability of each tag."""

    @property
    def cells(self) -> list[str]:
        """Like "The/DET boat/NOUN ./PUNCT"."""
        return [" ".join(self.tagged)] if self.words else []

    @property
    def tagged(self) -> list[str]:
        """Each word with its tag."""
        return [f"{word}/{one_line(tag)}" for word, tag in zip(self.words, self.tags, strict=True)]


def tags_of(answers: Sequence[TagsAnswer], examples: Sequence[Tagged]) -> list[str]:
    """The tags of all words of examples; empty ones for the words that were not read of a sentence that is too long."""
    pairs = zip(answers, examples, strict=True)
    return [tag for one, example in pairs for tag in [*one.tags, *[""] * (len(example.words) - len(one.tags))]]


def likeliest_tags(logits: Tensor) -> tuple[list[list[int]], list[list[float]]]:
    """The likeliest tag of each place of logits (B, T, N), and its probability."""
    return logits.argmax(-1).tolist(), logits.float().softmax(-1).amax(-1).tolist()


def in_brackets(words: Words, place: int) -> str:
    """A word in brackets among those beside it."""
    before, behind = words[max(0, place - BESIDE) : place], words[place + 1 : place + 1 + BESIDE]
    return " ".join([*before, f"[{words[place]}]", *behind])


@dataclass
class Tags(Balanced, ScoredForm, OutputForm):
    """A tag for each word: targets `labels` (B, W), those of padding IGNORE, and outputs with logits (B, W, N)."""

    rare_kinds: ClassVar[bool] = True
    eval_options: ClassVar[type[Any]] = MeasureLabels

    saved_apart: ClassVar[Mapping[str, str]] = {"lexicon": LEXICON}

    lexicon: Learned[Any] = None
    """A `Lexicon`: the tags, and which one each word has most often."""
    counts: Learned[dict[str, int]] = field(default_factory=dict)
    """How often each tag occurs in training, in their order; unknown (empty) in runs of version 0.3 and before."""

    @classmethod
    def load_part(cls, name: str, path: Path) -> Lexicon:
        return load_lexicon(path)

    def check_learned(self) -> None:
        if self.lexicon is None:
            raise UserError(f"there is no {LEXICON}")

    def learn(self, train: Dataset[Tagged], reads: TaggedWords, architecture: Any) -> "Tags":
        found = Counter(tag for sentence in train for tag in sentence.tags)
        return replace(self, lexicon=reads.lexicon, counts={tag: found[tag] for tag in reads.lexicon.tags})

    @property
    def class_names(self) -> tuple[str, ...]:
        found: tuple[str, ...] = self.lexicon.tags
        return found

    def in_order(self, names: Sequence[str]) -> "Tags":
        lexicon = replace(self.lexicon, tags=tuple(names))
        return replace(self, lexicon=lexicon, counts={name: self.counts[name] for name in names})

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.lexicon.tags)}

    def kinds(self, example: Tagged) -> set[str]:
        return set(example.tags)

    @property
    def summary(self) -> str:
        return f"{len(self.lexicon.tags):,} tags"

    def prepare(self, example: Tagged) -> list[Numbers]:
        return [np.array([self._numbers[tag] for tag in example.tags], np.int32)]

    @property
    def _numbers(self) -> dict[str, int]:
        return self.__dict__.setdefault("_by_tag", {tag: number for number, tag in enumerate(self.lexicon.tags)})

    def tensors(
        self, prepared: Sequence[Numbers], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        labels, _ = padded(prepared, IGNORE)
        weights = {"label_weights": label_weights(self.counts, labels)} if self.balance else {}
        return {}, {"labels": labels, **weights}, count_labels(labels)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[TagsAnswer]:
        found = []
        for one, numbers, shares in zip(prepared, *likeliest_tags(model(**inputs).logits), strict=True):
            places = one.places.tolist() if isinstance(one, PieceSentence) else range(len(one.words))
            tags = [self.lexicon.tags[number] for number in numbers[: len(one.words)]]
            found.append(TagsAnswer(words=one.words, tags=tags, places=places, shares=shares[: len(one.words)]))
        return found

    @property
    def metric(self) -> str:  # type: ignore[override]
        return class_metric(self.counts)

    def decided(self, answers: Sequence[TagsAnswer], examples: Sequence[Tagged]) -> Decided:
        tags, right = tags_of(answers, examples), [tag for sentence in examples for tag in sentence.tags]
        words = [(number, place) for number, one in enumerate(examples) for place in range(len(one.words))]
        sides = zip(answers, examples, strict=True)
        shares = [share for one, own in sides for share in [*one.shares, *[0.0] * (len(own.words) - len(one.shares))]]
        given = [in_brackets(examples[number].words, place) for number, place in words]
        return Decided(tags, right, given, shares, [number for number, _ in words])

    def remarks(self, answers: Sequence[TagsAnswer], examples: Sequence[Tagged]) -> list[str]:
        return one_answer(tags_of(answers, examples), [tag for sentence in examples for tag in sentence.tags])

    def metrics(self, answers: Sequence[TagsAnswer], examples: Sequence[Tagged]) -> dict[str, float]:
        """Accuracy, over all words and over those that the training text does not have, and macro F1."""
        return self._metrics(tags_of(answers, examples), examples)

    def baselines(
        self, reads: Any, examples: Sequence[Tagged], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """A tagger that knows each word's most frequent tag, and the most frequent tag of all."""
        known, words = self.lexicon, [word for sentence in examples for word in sentence.words]
        ways = {
            "each word's most frequent tag": [known.words.get(word, known.tag_of_unknown) for word in words],
            f"always {known.tags[0]}": [known.tags[0]] * len(words),
        }
        return {name: self._metrics(tags, examples) for name, tags in ways.items()}

    def _metrics(self, tags: Sequence[str], examples: Sequence[Tagged]) -> dict[str, float]:
        """Without unknown words nothing is said of them."""
        right, unknown = [tag for sentence in examples for tag in sentence.tags], self._unknown(examples)
        found = {"accuracy": accuracy(tags, right)}
        if unknown:
            found["accuracy_unknown"] = accuracy([tags[at] for at in unknown], [right[at] for at in unknown])
        return {**found, "macro_f1": macro_f1(tags, right)}

    def _unknown(self, examples: Sequence[Tagged]) -> list[int]:
        """The places of words that the training text lacks, among all words."""
        words = (word for sentence in examples for word in sentence.words)
        return [place for place, word in enumerate(words) if word not in self.lexicon.words]

    def notes(self, examples: Sequence[Tagged]) -> list[str]:
        right, unknown = [tag for sentence in examples for tag in sentence.tags], len(self._unknown(examples))
        return [
            f"{len(right):,} words, {len(set(right))} tags; {unknown:,} unknown words, which the training text lacks",
            *unseen_labels("tags", right, self.lexicon.tags),
        ]

    def scored_labels(self, output: Output, answer: TagsAnswer) -> Tensor:
        return torch.tensor([label_numbers([*self.class_names], answer.tags)])

    def named(self, text: str, answer: TagsAnswer) -> TagsAnswer:
        """As many tags as there are words, with spaces between them."""
        tags = text.split()
        if len(tags) != len(answer.words):
            raise UserError(f"--target has {len(tags)} tags, but the sentence has {len(answer.words)} words")
        label_numbers([*self.class_names], tags)
        return replace(answer, tags=tags)

    def scored_answer(self, labels: Tensor, answer: TagsAnswer) -> str:
        return " ".join(answer.tagged)

    def rows(self, sight: Sight, model: nn.Module, answer: TagsAnswer, before: int) -> list[MapRow]:
        """Where each word looked, in the layer that looks most decidedly."""
        maps = {site: sight[site].weights()[0].float().mean(0).cpu()[list(answer.places)] for site in sight.sites}
        if not maps:
            return []
        site, weights = max(maps.items(), key=lambda found: float(found[1].amax(-1).mean()))
        where = f"{site}, mean of its heads"
        return [MapRow(name, own, site=where) for name, own in zip(answer.tagged, weights, strict=True)]
