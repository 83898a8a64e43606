"""Passages that are read into a vector and written again from it: as one sequence, or sentence by sentence.

P sentences of a batch    B passages    S, T tokens    K sentences of a passage    C width of a vector
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Batch, Output, count_labels
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded, tokenised
from foveate.data.text.documents import Passage, Prose, joined, sentences
from foveate.data.text.prose_batches import ParagraphBatch, encode_sentences, paragraph_inputs, to_write
from foveate.decoding import Decoding, decode
from foveate.errors import at_least
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Learned, MapRow
from foveate.forms.grids import GridFinder
from foveate.forms.naming import Naming, token_names
from foveate.forms.processor import PreparedExample, Processor, RowProcessor
from foveate.forms.prose import ReadProse, row_buckets
from foveate.forms.scored import ScoredForm
from foveate.forms.written import WriteOptions, Written, WrittenAnswer, require_tokenizer
from foveate.metrics.reconstruction import fidelity, measured_fidelity
from foveate.metrics.resampling import Measured
from foveate.sight import Sight

PASSAGE_WORDS = 40
"""Words of a hierarchical model's passages, where the user does not say."""

MORE_SENTENCES = 2
"""A paragraph that is written may have this many sentences more than the one that was read."""

NAMED = 3
"""This many words stand for a sentence in pictures."""


class Sentences(NamedTuple):
    """The tokens of the sentences of a passage, or of all of it as one, without start and end."""

    tokens: list[np.ndarray]
    place: str = ""
    """Where the passage stands, or what it says."""

    def content(self) -> bytes:
        """All that is learned from it."""
        return b"\0".join(sentence.tobytes() for sentence in self.tokens)


@dataclass
class RewriteOptions(WriteOptions):
    """What `foveate run` has an auto-encoder tell of each text."""

    show: Literal["text", "vector", "neighbours"] = "text"
    """The text as it is written again, its vector (numbers with tabs between them), or the nearest texts that the model
    learned from (by the cosine of the vectors, which stands before each)."""
    neighbours: int = 3
    """How many of the nearest texts."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        at_least(1, "neighbours", self.neighbours)


@dataclass
class MeasureRewriting(WriteOptions):
    """How `foveate eval` measures an auto-encoder."""

    examples: int = 500
    """Measure at most this many sentences or passages, from all over the text."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        at_least(1, "examples", self.examples)


@dataclass(kw_only=True)
class RewrittenAnswer(WrittenAnswer):
    """A passage as it is written again."""

    called: ClassVar[str] = "Answer"

    source: Sentences = field(default_factory=lambda: Sentences([]), repr=False)
    """What was read."""


@dataclass(kw_only=True)
class PassageVector(Answer):
    """The vector of a passage."""

    vector: list[float] = field(default_factory=list)

    @property
    def cells(self) -> list[str]:
        return [f"{number:.6g}" for number in self.vector]


@dataclass(kw_only=True)
class NeighboursAnswer(Answer):
    """The nearest texts, each with the cosine of the vectors."""

    neighbours: list[tuple[float, str]] = field(default_factory=list)

    @property
    def cells(self) -> list[str]:
        return [f"{cosine:.3f} {text}" for cosine, text in self.neighbours]


@dataclass
class ReadPassage(ReadProse):
    """A passage: `source` (P, S) and `source_lengths` (P,); of a model that reads sentence by sentence also
    `paragraphs` (B, K) and `paragraph_lengths` (B,), else P is B."""

    max_length: int = 30
    """Sentences (or passages, for a model that is not hierarchical) with more tokens than this are left out (and
    counted)."""
    passage_words: int | None = None
    """Learn passages of whole sentences with at most this many words. Without it single sentences or, with a
    hierarchical model, passages of at most 40 words."""
    hierarchical: Learned[bool] = False
    """Whether the model reads sentence by sentence."""

    def check(self) -> None:
        super().check()
        at_least(1, "passage_words", 1 if self.passage_words is None else self.passage_words)

    def fit(self, architecture: Any) -> "ReadPassage":
        self.hierarchical = type(architecture).__name__.startswith("Hierarchical")
        return self

    def passages(self, prose: Prose) -> Iterator[Passage]:
        """What of the prose is read into one vector each."""
        if self.passage_words is None and not self.hierarchical:
            return prose.sentences()
        return prose.whole_passages(self.passage_words or PASSAGE_WORDS)

    def value(self, example: Passage) -> Passage:
        return example

    def open(self, given: str) -> Passage:
        return passage_of(given)

    def receive(self, given: Any, name: str) -> Passage:
        return passage_of(super().receive(given, name))

    def prepare(self, value: Passage) -> Sentences:
        if self.hierarchical:
            (found,) = encode_sentences([value], self.words)
        else:
            found = self.words.encode([value.text])
        return Sentences([np.array(tokens, np.int32) for tokens in found], value.text)

    def longest(self, prepared: Sentences) -> int:
        """How many tokens the model reads in a row, at most."""
        return max(map(len, prepared.tokens), default=0)

    def cost(self, prepared: Sentences) -> int:
        return self.longest(prepared) + 1

    def rows(self, prepared: Sentences) -> int:
        return len(prepared.tokens) + self.hierarchical

    def places(self, prepared: Sentences) -> int:
        return sum(map(len, prepared.tokens)) + self.rows(prepared)

    def positions(self, prepared: Sentences) -> int:
        return 0

    def longer_than_training(self, prepared: Sentences) -> bool:
        return self.longest(prepared) > self.max_length

    def tensors(
        self, prepared: Sequence[Sentences], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        special = self.words.special
        if self.hierarchical:
            return paragraph_inputs([[*map(np.ndarray.tolist, one.tokens), []] for one in prepared], special), Changes()
        source, lengths = padded([np.array([*one.tokens[0], special.end]) for one in prepared], special.pad)
        return {"source": source, "source_lengths": lengths}, Changes()

    def batch(self, inputs: dict[str, Tensor], targets: dict[str, Tensor], weight: Tensor) -> Batch:
        kind = ParagraphBatch if self.hierarchical else Batch
        return kind(inputs, targets, weight, "passages")

    def buckets(self, train: Dataset[Passage], processor: Processor) -> Buckets:
        kept = Dataset(
            train.name, [one for one in self.encode(train) if self.longest(one) <= self.max_length], train.unit
        )
        split = lambda row: PreparedExample(row, row.tokens)  # noqa: E731
        return row_buckets(kept, len(train), RowProcessor(processor, split), self.max_length)

    def encode(self, passages: Iterable[Passage]) -> list[Sentences]:
        """The tokens of passages, which are read once, in pieces."""
        whole = not self.hierarchical
        texts = (
            (text, (number, one.place))
            for number, one in enumerate(passages)
            for text in ((one.text,) if whole else one.sentences)
        )
        rows, known, _ = tokenised(texts, self.words, (), ())
        found = iter(rows.take(np.arange(len(known))))
        return [Sentences([next(found) for _ in same], place) for (_, place), same in groupby(known)]

    def names(self, prepared: Sentences) -> list[str]:
        """A sentence is called by its first words."""
        texts = self.words.decode([tokens.tolist() for tokens in prepared.tokens])
        return [*(" ".join(text.split()[:NAMED]) for text in texts), self.end_sign]

    def axis(self, value: Passage, prepared: Sentences, grid: GridFinder) -> Naming:
        return token_names(self.names(prepared))


@dataclass
class Rewritten(Written):
    """The passage again: `target` (P, T), and `target_lengths` (P,) of a model that reads passages as one sequence."""

    saved_apart: ClassVar[dict[str, str]] = {"tokenizer": "tokenizer.json"}
    options: ClassVar[type[Any]] = RewriteOptions
    eval_options: ClassVar[type[Any]] = MeasureRewriting
    metric: ClassVar[str] = "tokens"
    attending: ClassVar[tuple[str, ...]] = ("planner",)

    decoding: Decoding = field(default_factory=lambda: Decoding(method="greedy"))
    tokenizer: Learned[Any] = None
    hierarchical: Learned[bool] = False
    """Whether the model writes sentence by sentence."""

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def learn(self, train: Dataset[Passage], reads: Any, architecture: Any) -> "Rewritten":
        return Rewritten(self.decoding, reads.tokenizer, reads.hierarchical)

    def sizes(self) -> dict[str, int]:
        return {}

    def tensors(
        self, prepared: Sequence[Any], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """After its last sentence, each paragraph of a hierarchical model has an empty one."""
        special = self.tokenizer.special
        empty = [np.array([], np.int32)] if self.hierarchical else []
        rows = [tokens for own in prepared for tokens in (*own, *empty)]
        inputs, labels = to_write([np.array([special.start, *row, special.end]) for row in rows], special)
        if self.hierarchical:
            del inputs["target_lengths"]
        return inputs, {"labels": labels}, count_labels(labels)

    def decide_all(
        self,
        model: Any,
        batches: Iterable[tuple[Sequence[Any], dict[str, Tensor]]],
        options: Any,
        at_once: int = 1,
    ) -> Iterator[list[WrittenAnswer]]:
        """Each sentence of a paragraph is searched for before the next one is begun."""
        read: deque[Sentences] = deque()

        def noted() -> Iterator[dict[str, Tensor]]:
            for prepared, inputs in batches:
                read.extend(prepared)
                yield inputs

        found = self._paragraphs if self.hierarchical else self._sentences
        for answers in found(model, noted(), options, at_once):
            yield [replace(answer, source=read.popleft()) for answer in answers]

    def _sentences(self, model: Any, batches: Any, options: Any, at_once: int) -> Iterator[list[RewrittenAnswer]]:
        for found in self.search(model, batches, options, at_once):
            yield [RewrittenAnswer(**{**vars(one), "text": joined([one.text])}) for one in self.answers(found)]

    def _paragraphs(self, model: Any, batches: Any, options: Any, at_once: int) -> Iterator[list[RewrittenAnswer]]:
        generator = torch.Generator(next(model.parameters()).device).manual_seed(options.seed)
        for inputs in batches:
            written = self.write_paragraphs(model, inputs, options.decoding, generator)
            yield [RewrittenAnswer(text=joined(self.tokenizer.decode(parts))) for parts in written]

    def write_paragraphs(
        self, model: Any, inputs: dict[str, Tensor], decoding: Decoding, generator: torch.Generator | None = None
    ) -> list[list[list[int]]]:
        """The tokens of each sentence of the paragraphs that a hierarchical model writes again."""
        special, state = self.tokenizer.special, model.start(**inputs)
        longest = inputs["source_lengths"][inputs["paragraphs"]].amax(1)
        rows = torch.arange(len(longest), device=longest.device)
        before = torch.zeros_like(state.hidden[0][-1])
        written: list[list[list[int]]] = [[] for _ in rows]
        for _ in range(inputs["paragraphs"].shape[1] + MORE_SENTENCES):
            vectors = model.plan(before, state)
            found = decode(model.writer, {"vectors": vectors}, special, longest, decoding, generator)
            texts = [best.tokens for best, *_ in found]
            stay = [place for place, tokens in enumerate(texts) if tokens]
            if not stay:  # an empty sentence ends its paragraph
                break
            for place in stay:
                written[int(rows[place])].append(texts[place])
            source, lengths = padded([np.array([*texts[place], special.end]) for place in stay], special.pad)
            before = model.reader(source.to(rows.device), lengths.to(rows.device))
            kept = torch.tensor(stay, device=rows.device)
            state.reorder(kept)
            rows, longest = rows[kept], longest[kept]
        return written

    def teach(self, answer: Any) -> dict[str, Tensor]:
        """What was read is written as it was: the model looks at the sentences that it should write again."""
        return self.tensors([answer.source.tokens], Changes(), None)[0]

    def scored_labels(self, output: Output, answer: Any) -> Tensor:
        """What was read, which should be written again."""
        labels: Tensor = self.tensors([answer.source.tokens], Changes(), None)[1]["labels"]
        return labels

    def named(self, text: str, answer: Any) -> Any:
        return ScoredForm.named(self, text, answer)

    def scored_answer(self, labels: Tensor, answer: Any) -> str:
        return "the same again"

    def axis(self, answer: Any) -> None:
        return None

    def rows(self, sight: Sight, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        """Which sentences each one looked at."""
        if not sight.sites:
            return []
        site = sight.sites[-1]
        weights = sight[site].weights()[0].float().mean(0).cpu()
        texts = self.tokenizer.decode([tokens.tolist() for tokens in answer.source.tokens])
        names = [*(" ".join(text.split()[:NAMED]) for text in texts), self.end_sign]
        return [MapRow(name, row, site) for name, row in zip(names, weights, strict=True)]

    def metrics(self, answers: Sequence[WrittenAnswer], examples: Sequence[Passage]) -> dict[str, float]:
        """What is written again faithfully."""
        return self.measurable(answers, examples).all()

    def measurable(self, answers: Sequence[WrittenAnswer], examples: Sequence[Passage]) -> Measured:
        tokens = self.tokenizer.encode([one.text for one in answers])
        return measured_fidelity(tokens, [passage.text for passage in examples], self.tokenizer)

    def fidelity(self, tokens: Sequence[Sequence[int]], examples: Sequence[Passage]) -> dict[str, float]:
        """How much of the passages these tokens are."""
        return dict(vars(fidelity(tokens, [passage.text for passage in examples], self.tokenizer)))


def passage_of(text: str) -> Passage:
    """A user's text; its sentences are told by their marks."""
    return Passage("the input", "", tuple(sentences(" ".join(text.split()))))
