"""Answers that are spans of a text, from a model that reads the question and the text in one row (Devlin et al. 2019,
section 4.2). A long text is read in windows that overlap.

B windows    T tokens of a window
"""

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Output, Picture
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.text.facts import TextQuestion
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError, at_least, quoted
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Learned, MapRow, Naming, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.naming import single_input_names, token_names
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.question import answer_metrics, answers_by_question
from foveate.forms.scored import ScoredForm
from foveate.forms.text import PreparedBuckets, nothing_fits
from foveate.forms.text_question import AskedText, AskOptions, PassageQuestion
from foveate.viewer import Alignment, plot_alignments
from foveate.viewer.sides import SidePair

ROW, OVERLAP = 384, 128
"""Tokens of a window, and of the text in two windows that follow each other, at most: those of transformers."""

Span = tuple[int, int]
"""Where something begins and ends."""


@dataclass
class SpanOptions(AskOptions):
    """What `foveate run` asks of each text."""

    longest: int = 15
    """Tokens of an answer, at most."""

    def check(self) -> None:
        at_least(1, "longest", self.longest)


class Window(NamedTuple):
    """A part of a text, behind the question."""

    tokens: np.ndarray
    """Those of both, and around them (T,)."""
    first: int
    """The number in the text of its first token here."""
    size: int
    """How many tokens of the text there are."""


class AskedPassage(NamedTuple):
    """A text in windows, each behind the question about it."""

    windows: Sequence[Window]
    begin: int
    """The place of the first token of the text in each window."""
    typed: bool
    """Whether the tokens of the text are of another type than those of the question."""
    tokens: Sequence[Span]
    """Where each token of the text begins and ends in it."""
    words: Sequence[Span]
    """The same of the whole word that each is of."""
    value: PassageQuestion
    tokenizer: Any


@dataclass
class AskedRow(AskedText):
    """A question and a text in one row, or several: inputs `tokens` (B, T), `lengths` (B,) and perhaps `token_types`
    (B, T)."""

    segments: Learned[bool] = False
    """Whether the model has a vector of its own for the tokens of the text."""
    room: Learned[int] = ROW
    """Tokens of a window, at most."""

    def learn(self, train: Dataset[TextQuestion], architecture: Any) -> "AskedRow":
        """With the tokenizer of trained weights. Raises UserError where there are none."""
        if not isinstance(self.tokenizer, TextTokenizer):
            raise UserError(
                "a model that answers with a part of the text begins from trained weights: name them --from"
            )
        return self.for_model(architecture)

    def for_model(self, architecture: Any) -> "AskedRow":
        """This form for a model's types of tokens and its positions."""
        found = copy(self)
        found.segments = (architecture.token_types or 0) > 1
        found.room = min(ROW, architecture.max_length)
        return found

    def prepare(self, value: PassageQuestion) -> AskedPassage:  # type: ignore[override]
        """The windows of a text. Raises UserError for a question that leaves no room for it."""
        text, question = value
        before, between, behind = self.words.around_pairs  # type: ignore[attr-defined]
        (asked,) = self.words.encode([question])
        ids, tokens, words = self.words.words(text)  # type: ignore[attr-defined]
        begin = [*before, *asked, *between]
        room = self.room - len(begin) - len(behind)
        step = room - min(OVERLAP, self.room // 2)
        if step < 1:
            raise UserError(f"the question {quoted(question)} has {len(asked):,} tokens: no room is left for the text")
        if not ids:
            raise UserError(f"{quoted(text)} has no tokens")
        windows = list[Window]()
        for first in range(0, len(ids), step):
            own = ids[first : first + room]
            windows.append(Window(np.array([*begin, *own, *behind], np.int32), first, len(own)))
            if first + room >= len(ids):
                break
        return AskedPassage(windows, len(begin), self.segments, tokens, words, value, self.words)

    def buckets(self, train: Dataset[TextQuestion], processor: Processor) -> Buckets:
        """Of the windows of texts with at most `max_length` tokens, in which the answer stands word for word. One
        without the answer has the first token for it. Raises UserError where there is none."""
        prepared, places, left = [], [], 0
        for example in train:
            span, passage = processor.writes.prepare(example)[0], self.prepare(self.value(example))
            if span is None or len(passage.tokens) > self.max_length:
                left += 1
                continue
            for window in passage.windows:
                target = target_of(window, passage, span)
                prepared.append(PreparedExample(passage._replace(windows=[window]), target))
                places.append(example.place)
        limit = f"{self.max_length:,} tokens"
        if not prepared:
            raise nothing_fits(train, len(train), f"{limit}, or an answer that is no part of its text")
        why = f"texts of more than {limit}, or answers that are no part of them"
        report = f"{train.name}: {left:,} of {len(train):,} {train.unit} left out for {why}" if left else ""
        return PreparedBuckets(train.name, prepared, places, processor, report)

    def cost(self, prepared: AskedPassage) -> int:  # type: ignore[override]
        """1: a batch is this many windows."""
        return 1

    def places(self, prepared: AskedPassage) -> int:  # type: ignore[override]
        return sum(len(window.tokens) for window in prepared.windows)

    def positions(self, prepared: AskedPassage) -> int:  # type: ignore[override]
        return max(len(window.tokens) for window in prepared.windows)

    def tensors(  # type: ignore[override]
        self, prepared: Sequence[AskedPassage], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        rows = [(window, one.begin) for one in prepared for window in one.windows]
        tokens, lengths = padded([window.tokens for window, _ in rows], self.words.special.pad)
        inputs = {"tokens": tokens, "lengths": lengths}
        if self.segments:
            types = [(np.arange(len(window.tokens)) >= begin).astype(np.int32) for window, begin in rows]
            inputs["token_types"] = padded(types, 0)[0]
        return inputs, Changes()

    def longer_than_training(self, prepared: AskedPassage) -> bool:  # type: ignore[override]
        return len(prepared.tokens) > self.max_length

    def names(self, prepared: AskedPassage) -> list[str]:  # type: ignore[override]
        """Those of the first window."""
        return self.words.pieces(prepared.windows[0].tokens.tolist())


def target_of(window: Window, passage: AskedPassage, span: Span) -> Span:
    """The places of the first and the last token of a span of the text; (0, 0) where a window has not all of it."""
    inside = [at for at, (start, end) in enumerate(passage.tokens) if end > span[0] and start < span[1]]
    if not inside or inside[0] < window.first or inside[-1] >= window.first + window.size:
        return 0, 0
    return tuple(passage.begin + at - window.first for at in (inside[0], inside[-1]))  # type: ignore[return-value]


@dataclass(kw_only=True)
class SpanAnswer(Answer):
    """The part of a text that answers a question."""

    question: str = ""
    answer: str = ""
    probability: float = 0.0
    """The product of those of its first and of its last token."""
    start: int = 0
    """Where it begins in the text, and where it ends, in characters."""
    end: int = 0
    passage: Any = field(default=None, repr=False)
    """The `AskedPassage` that was read."""
    window: int = field(default=0, repr=False)
    """The number of its window with the answer, and the place of the first token there."""
    place: int = field(default=0, repr=False)

    @property
    def cells(self) -> list[str]:
        """The question, the answer and its probability."""
        return [self.question, self.answer, f"{self.probability:.3f}"] if self.passage is not None else []

    @property
    def title(self) -> str:
        return f"{self.question} {self.answer}"

    @property
    def pieces(self) -> list[str]:
        """The names of the tokens of the window with the answer."""
        found: list[str] = self.passage.tokenizer.pieces(self.passage.windows[self.window].tokens.tolist())
        return found


@dataclass
class Spans(ScoredForm, OutputForm):
    """A span of the text: targets `labels` (B, 2), the places of its first and last token, and outputs with logits
    (B, 2, T)."""

    options: ClassVar[type[Any]] = SpanOptions

    def prepare(self, example: TextQuestion) -> list[Span | None]:
        """Where the answer first stands in the text, in any letter case; None for one that does not."""
        start = example.text.find(example.answer)
        start = example.text.casefold().find(example.answer.casefold()) if start < 0 else start
        return [None if start < 0 else (start, start + len(example.answer))]

    def tensors(
        self, prepared: Sequence[Span], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        labels = torch.tensor(prepared)
        return {}, {"labels": labels}, torch.full((len(labels),), 2)

    def nothing(self) -> SpanAnswer:
        return SpanAnswer()

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[AskedPassage], options: Any
    ) -> list[SpanAnswer]:
        logits = model(**inputs).logits.double().cpu()
        counts = [len(one.windows) for one in prepared]
        pairs = zip(prepared, logits.split(counts), strict=True)
        return [best_span(one, rows, getattr(options, "longest", SpanOptions.longest)) for one, rows in pairs]

    def metrics(self, answers: Sequence[SpanAnswer], examples: Sequence[TextQuestion]) -> dict[str, float]:
        """The share of answers that are exactly right, and F1 of their words (Rajpurkar et al. 2016)."""
        return span_metrics([one.answer for one in answers], examples)

    def baselines(
        self, reads: Any, examples: Sequence[TextQuestion], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent answer of all, and the most frequent one to the same question."""
        by_question = answers_by_question(train())
        counted = sum(by_question.values(), Counter[str]())
        frequent = counted.most_common(1)[0][0]
        blind = [by_question.get(one.question, counted).most_common(1)[0][0] for one in examples]
        return {
            "the most frequent answer": span_metrics([frequent] * len(examples), examples),
            "the question alone": span_metrics(blind, examples),
        }

    def teach(self, answer: SpanAnswer) -> dict[str, Tensor]:
        """A look shows the window with the answer."""
        if answer.passage is None:
            return {}
        window = answer.passage.windows[answer.window]
        tokens = torch.from_numpy(window.tokens)[None].long()
        inputs = {"tokens": tokens, "lengths": torch.tensor([tokens.shape[1]])}
        if answer.passage.typed:
            inputs["token_types"] = (torch.arange(tokens.shape[1]) >= answer.passage.begin).long()[None]
        return inputs

    def scored_labels(self, output: Output, answer: SpanAnswer) -> Tensor:
        """The places of the first and the last token of the answer."""
        if answer.passage is None:
            raise UserError("there is no answer whose probability could change")
        first, words = answer.passage.windows[answer.window].first, answer.passage.words
        last = answer.place
        while words[first + last - answer.passage.begin][1] < answer.end:
            last += 1
        return torch.tensor([[answer.place, last]])

    def side_names(self, sight: Any, along: Naming, answer: SpanAnswer) -> dict[str, SidePair]:
        return single_input_names(sight, token_names(answer.pieces))

    def rows(self, sight: Any, model: nn.Module, answer: SpanAnswer, before: int) -> list[MapRow]:
        """Where the first token of the answer looked."""
        weights = sight[sight.sites[-1]].weights()[0].float().mean(0).cpu()
        return [MapRow(f"{answer.answer} {answer.probability:.2f}", weights[answer.place])]

    def draw(self, answer: SpanAnswer, value: Any, rows: Sequence[MapRow], grid: GridFinder) -> Picture | None:
        """Over the tokens of the window with the answer."""
        weights = torch.stack([torch.as_tensor(row.weights) for row in rows])
        return plot_alignments([Alignment(weights, [row.name for row in rows], answer.pieces, answer.title)])


def best_span(passage: AskedPassage, logits: Tensor, longest: int) -> SpanAnswer:
    """The span with the highest product of probabilities of all windows (B, 2, T). As in transformers, the first token
    of a window has a share of them, and is no answer."""
    found = SpanAnswer(question=passage.value[1], passage=passage, probability=-1.0)
    for number, (window, rows) in enumerate(zip(passage.windows, logits, strict=True)):
        inside = range(passage.begin, passage.begin + window.size)
        chances = rows[:, [0, *inside]].softmax(-1)[:, 1:]
        products = (chances[0, :, None] * chances[1]).triu().tril(longest - 1)
        best = int(products.argmax())
        if (probability := float(products.flatten()[best])) > found.probability:
            first, last = divmod(best, window.size)
            found.start = passage.words[window.first + first][0]
            found.end = passage.words[window.first + last][1]
            found.probability, found.window, found.place = probability, number, passage.begin + first
    found.answer = passage.value[0][found.start : found.end]
    return found


def span_metrics(answers: Sequence[str], examples: Sequence[TextQuestion]) -> dict[str, float]:
    """Exact answers, in any letter case, and F1 of their words, in percent. Where a question has several right answers,
    the one counts that is most like what was answered."""
    pairs = [
        [_likeness(answer.casefold(), right.casefold()) for right in one.answers or (one.answer,)]
        for answer, one in zip(answers, examples, strict=True)
    ]
    exact, shared = ([max(one[part] for one in rights) for rights in pairs] for part in (0, 1))
    count = max(1, len(pairs))
    own = {name: value for name, value in answer_metrics(answers, examples).items() if name != "accuracy"}
    return {"accuracy": 100 * sum(exact) / count, "f1": 100 * sum(shared) / count, **own}


def _likeness(answer: str, right: str) -> tuple[float, float]:
    """Whether an answer is the right one, and F1 of their words."""
    words, others = answer.split(), right.split()
    same = sum((Counter(words) & Counter(others)).values())
    return float(answer == right), 2 * same / max(1, len(words) + len(others))
