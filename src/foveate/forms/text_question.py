"""Questions about texts, and answers that are words of training.

B batch    S tokens of a text    T tokens of a question
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor, nn

from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.splits import Ties
from foveate.data.table import CONTEXT, QUESTION, Column
from foveate.data.text.facts import TextQuestion
from foveate.data.text.scripts import word_pattern
from foveate.data.tokens.tokenizers import Tokens
from foveate.errors import UserError
from foveate.forms.form import Changes, MapRow, Naming
from foveate.forms.label import LabelAnswer
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.question import FrequentAnswer, answer_metrics, answers_by_question
from foveate.forms.read_text import ASKED, unknown_note
from foveate.forms.text import PreparedBuckets, Text, nothing_fits
from foveate.viewer.protocol import Input
from foveate.viewer.sides import SidePair

LAST_QUESTION = re.compile(r"(?P<text>.*[.!?])\s+(?P<question>[^.!?]+\?)\s*", re.DOTALL)
"""A text whose last sentence is a question."""

PassageQuestion = tuple[str, str]
"""A text and the question about it."""


@dataclass
class AskOptions:
    """What `foveate run` asks of each text."""

    query: str = ""
    """The question about each text. Without it, a text ends with its question, or has it after a tab."""

    def check(self) -> None:
        """Any text can be a question."""


class AskedTokens(NamedTuple):
    """The tokens of a text and of the question about it."""

    text: np.ndarray
    question: np.ndarray
    asked: str
    """The question as it was given."""


@dataclass
class AskedText(Text):
    """A text and a question: inputs `source` (B, S), `source_lengths`, `target` (B, T) and `target_lengths`."""

    columns: ClassVar[tuple[Column, ...]] = (CONTEXT, QUESTION)
    tokens: Tokens = "words"
    """What texts and questions are cut into."""
    vocabulary: int = 10_000
    """How many of them to learn, at most."""
    max_length: int = 1024
    """Texts with more tokens than this are left out (and counted)."""

    def texts(self, train: Dataset[TextQuestion]) -> Iterator[str]:
        return (part for one in train for part in self.value(one))

    def advice(self, train: Dataset[TextQuestion], begun: bool) -> list[str]:
        """None: a question is answered by the words of its text."""
        return []

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        return (), ()

    def open(self, given: str) -> PassageQuestion | None:
        """The text and its question, which is behind the last tab or is the last sentence; None for an empty text.

        Raises UserError where there is no question.
        """
        if not given.strip():
            return None
        text, _, question = given.rpartition("\t")
        if question.strip() and "\t" in given:
            return (text.strip(), question.strip()) if text.strip() else None
        if found := LAST_QUESTION.fullmatch(given):
            return found["text"], found["question"]
        raise UserError('no question about the text: give --query "...", or end the text with one')

    def receive(self, given: Input, name: str) -> PassageQuestion:
        found = self.open(super().receive(given, name))
        if found is None:
            raise UserError("the text is empty: there is nothing to look at")
        return found

    def size(self, value: PassageQuestion) -> int:
        """The text is cut, and its question is not."""
        return len(value[0])

    def part(self, value: PassageQuestion, count: int) -> PassageQuestion:
        text, question = value
        return text[:count], question

    def value(self, example: TextQuestion) -> PassageQuestion:  # type: ignore[override]
        return example.text, example.question

    def place(self, example: TextQuestion) -> str:
        return "\t".join(self.value(example))

    def group(self, example: TextQuestion) -> Hashable:
        return self.place(example).casefold()

    def ties(self, example: TextQuestion) -> Ties:
        """The text too: all questions about one are on the same side."""
        return {**super().ties(example), "text": example.text.casefold()}

    def warnings(self, name: str, examples: Sequence[TextQuestion]) -> list[str]:
        return unknown_note(name, self.words, (one.text for one in examples[:ASKED]))

    def buckets(self, train: Dataset[TextQuestion], processor: Processor) -> Buckets:
        """Of the questions about texts with at most `max_length` tokens. Raises UserError where there is none."""
        texts, questions = (self._encode([self.value(one)[side] for one in train]) for side in (0, 1))
        prepared, places = [], []
        for example, text, question in zip(train, texts, questions, strict=True):
            if len(text) <= self.max_length:
                tokens = AskedTokens(text, question, example.question)
                prepared.append(PreparedExample(tokens, processor.writes.prepare(example)[0]))
                places.append(example.place)
        limit = f"{self.max_length:,} tokens"
        if not prepared:
            raise nothing_fits(train, len(train), limit)
        left_out = f"{len(train) - len(prepared):,} of {len(train):,} {train.unit} left out"
        report = f"{train.name}: {left_out} for texts of more than {limit}" if len(prepared) < len(train) else ""
        return PreparedBuckets(train.name, prepared, places, processor, report)

    def prepare(self, value: PassageQuestion) -> AskedTokens:
        text, question = self._encode(list(value))
        return AskedTokens(text, question, value[1])

    def _encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The tokens of each text; one unknown token where nothing can be read."""
        unknown = [self.words.special.unknown]
        return [np.array(found or unknown, np.int32) for found in self.words.encode(texts)]

    def cost(self, prepared: AskedTokens) -> int:
        """1: a batch is this many questions."""
        return 1

    def places(self, prepared: AskedTokens) -> int:
        return len(prepared.text)

    def positions(self, prepared: AskedTokens) -> int:
        return len(prepared.text)

    def tensors(  # type: ignore[override]
        self, prepared: Sequence[AskedTokens], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        pad = self.words.special.pad
        source, source_lengths = padded([one.text for one in prepared], pad)
        target, target_lengths = padded([one.question for one in prepared], pad)
        inputs = {"source": source, "source_lengths": source_lengths}
        return {**inputs, "target": target, "target_lengths": target_lengths}, Changes()

    def longer_than_training(self, prepared: AskedTokens) -> bool:
        return len(prepared.text) > self.max_length

    def names(self, prepared: AskedTokens) -> list[str]:  # type: ignore[override]
        return self.words.pieces(prepared.text.tolist())


@dataclass(kw_only=True)
class AskedAnswer(LabelAnswer):
    """The answer to a question about a text."""

    question: str = ""

    @property
    def cells(self) -> list[str]:
        """The question, the answer and its probability."""
        return [self.question, self.label, f"{self.probability:.3f}"] if self.label else []

    def json_values(self) -> dict[str, Any]:
        """Question, answer and probability."""
        if not self.label:
            return {"answer": None}
        return {"question": self.question, "answer": self.label, "probability": self.probability}

    @property
    def title(self) -> str:
        return f"{self.question} {super().title}"


@dataclass
class TextAnswer(FrequentAnswer):
    """One of the most frequent answers to questions about texts."""

    options: ClassVar[type[Any]] = AskOptions

    @property
    def summary(self) -> str:
        return f"{len(self.labels):,} answers"

    def nothing(self) -> AskedAnswer:
        return AskedAnswer()

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[AskedTokens], options: Any
    ) -> list[LabelAnswer]:
        found = super().decide(model, inputs, prepared, options)
        return [
            AskedAnswer(
                label=own.label, probability=own.probability, probabilities=own.probabilities, question=one.asked
            )
            for own, one in zip(found, prepared, strict=True)
        ]

    def baselines(
        self, reads: Any, examples: Sequence[TextQuestion], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent answer of all, the most frequent one to the same question, and the answer that the text
        names last."""
        by_question = answers_by_question(train())
        frequent = max(self.labels, key=self.labels.__getitem__)
        blind, last = [], []
        for one in examples:
            counts = by_question.get(one.question) or Counter({frequent: 1})
            blind.append(counts.most_common(1)[0][0])
            named = [word for word in word_pattern().findall(one.text) if word in counts]
            last.append(named[-1] if named else frequent)
        return {
            "the most frequent answer": answer_metrics([frequent] * len(examples), examples),
            "the question alone": answer_metrics(blind, examples),
            "the last fitting word of the text": answer_metrics(last, examples),
        }

    def side_names(self, sight: Any, along: Naming, answer: AskedAnswer) -> dict[str, SidePair]:
        """The question attends to the text."""
        return {site: ([answer.question], along(sight[site].shape[-1])) for site in sight.sites}

    def rows(self, sight: Any, model: nn.Module, answer: LabelAnswer, before: int) -> list[MapRow]:
        """Where the question looked in the text."""
        weights = sight[sight.sites[-1]].weights()[0, :, 0].float().mean(0).cpu()
        return [MapRow(f"{answer.label} {answer.probability:.2f}", weights)]


def share_in_sentence(pieces: Sequence[str], weights: Sequence[float], sentence: int) -> float:
    """The sum of the weights of a sentence by its number (from 0); sentences end with a full stop."""
    total, number = 0.0, 0
    for piece, weight in zip(pieces, weights, strict=True):
        total += weight * (number == sentence)
        number += piece.strip("·") == "."
    return total
