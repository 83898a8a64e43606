"""Answers to questions about texts: a query from outside, given at run time."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from foveate.data import TRAINERS
from foveate.data.dataset import Dataset
from foveate.data.text.facts import TextQuestion, text_questions
from foveate.data.text.question_processor import TextQuestionProcessor
from foveate.errors import TextError, one_line
from foveate.forms.label import choose_label
from foveate.sight import look
from foveate.tasks.answers.questions import (
    DecidesAnswers,
    QuestionExamples,
    answer_metrics,
    answers_by_question,
    frequent_answers,
)
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Task
from foveate.tasks.start.parts import WholeRun
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import SidePair

BATCH = 256
"""Questions that are answered together."""

LAST_QUESTION = re.compile(r"(?P<text>.*[.!?])\s+(?P<question>[^.!?]+\?)\s*", re.DOTALL)
"""A text whose last sentence is a question."""


@dataclass
class Questions(QuestionExamples):
    """Which questions to learn from: a table with text<TAB>question<TAB>answer on each line."""


@dataclass
class Asked:
    """What `foveate run` asks of each text."""

    query: str = ""
    """The question about each text. Without it, a text ends with its question, or has it after a tab."""

    def check(self) -> None:
        """Any text can be a question."""


@dataclass
class Answer:
    """The answer to a question about a text."""

    given: str
    question: str
    text: str
    """The most probable answer."""
    probability: float
    probabilities: dict[str, float] = dataclass_field(default_factory=dict)

    @property
    def line(self) -> str:
        """The question, the answer and its probability, with tabs between them."""
        return "\t".join([one_line(self.question), one_line(self.text), f"{self.probability:.3f}"])


@dataclass
class Ask(DecidesAnswers, Task[Architecture]):
    """Train a model that answers questions about texts.

    `foveate run RUN "Ada went to the kitchen. Ben ran to the barn." --query "Where is Ada?"` then answers.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "ask"
    unit = "questions"
    files = "TABLE"
    processor = TextQuestionProcessor
    options = Asked
    start_parts = WholeRun(grows="classes")
    default_training = Training(
        usual_epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=100,
        label_smoothing=0.0,
        validate_every=200,
        save_every=200,
    )

    examples: Annotated[Questions, tyro.conf.arg(name="")] = dataclass_field(default_factory=Questions)
    model: str = "attentive-reader-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/ask")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[TextQuestion]:
        return text_questions(paths)

    def fit(self, train: Dataset[TextQuestion]) -> TextQuestionProcessor:
        answers = frequent_answers(train, self.examples.answers)
        texts = (part for one in train for part in (one.text, one.question))
        return TextQuestionProcessor(TRAINERS["words"](texts, self.examples.vocabulary, True), answers)

    def grow(self, trained: TextQuestionProcessor, train: Dataset[TextQuestion]) -> TextQuestionProcessor:
        found = frequent_answers(train, self.examples.answers)
        return replace(trained, answers=dict.fromkeys(trained.answers, 0) | found)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Asked) -> list[Answer]:
        """The answer to the query about each text."""
        pairs = [_split(text, options.query, place) for place, text in enumerate(texts)]
        answers = predictor.processor.answers
        shares = _decide(predictor, pairs)
        return [
            Answer(given, question, *choose_label(answers, one))
            for (given, question), one in zip(pairs, shares, strict=True)
        ]

    def measure(self, predictor: Predictor, examples: Sequence[TextQuestion], options: Asked) -> Measured:
        """The share of right answers, of each kind of question, and the share of the attention that is in the sentence
        with the answer, where it is known."""
        pairs = [(one.text, one.question) for one in examples]
        answers = [choose_label(predictor.processor.answers, one)[0] for one in _decide(predictor, pairs)]
        metrics = answer_metrics(answers, examples)
        marked = [one for one in examples if one.sentence is not None][:BATCH]
        if marked:
            metrics["attention_in_sentence"] = 100 * _share_in_sentence(predictor, marked)
        return Measured(answers, metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[TextQuestion], options: Asked
    ) -> dict[str, dict[str, float]]:
        """The most frequent answer of all, the most frequent one to the same question, and the answer that the text
        names last."""
        answers: dict[str, int] = predictor.processor.answers
        by_question = answers_by_question(self.open()[0])
        frequent = max(answers, key=answers.__getitem__)
        blind, last = [], []
        for one in examples:
            counts = by_question.get(one.question) or Counter({frequent: 1})
            blind.append(counts.most_common(1)[0][0])
            named = [word for word in re.findall(r"\w+", one.text) if word in counts]
            last.append(named[-1] if named else frequent)
        return {
            "the most frequent answer": answer_metrics([frequent] * len(examples), examples),
            "the question alone": answer_metrics(blind, examples),
            "the last fitting word of the text": answer_metrics(last, examples),
        }

    def picture(self, predictor: Predictor, prediction: Answer) -> Any:
        """Where the model looked in the text for its answer, as one row."""
        from foveate.viewer import Alignment, plot_alignments

        sight, pieces = _look(predictor, prediction.given, prediction.question)
        weights = sight[sight.sites[-1]].weights()[0].mean(0)
        label = f"{prediction.question} {prediction.text} {prediction.probability:.2f}"
        return plot_alignments([Alignment(weights.cpu(), [label], pieces, "")])

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.forms.inputs import check_length, make_title, require_text

        given = require_text(given, predictor.task.model)
        text, question = _split(given, "", 0)
        (answer,) = self.answer(predictor, [given], Asked())
        sight, pieces = _look(predictor, text, question, sites)
        check_length(len(pieces), max_length, "the text")
        names: dict[str, SidePair] = {site: ([question], pieces) for site in sight.sites}
        return LookResult(sight, names, make_title(text), [f"{answer.question} {answer.text}", *sight.notes])


def _split(text: str, query: str, place: int) -> tuple[str, str]:
    """The text and the question about it."""
    if query.strip():
        return text.strip(), query.strip()
    before, tab, after = text.partition("\t")
    if tab and after.strip():
        return before.strip(), after.strip()
    if found := LAST_QUESTION.fullmatch(text):
        return found["text"], found["question"]
    raise TextError(place, 'no question about the text: give --query "...", or end the text with one')


def _inputs(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    texts, questions = map(list, zip(*pairs, strict=True))
    processor = predictor.processor
    return processor.ask(processor.tokens(texts), processor.tokens(questions))


def _decide(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
    """The probability of each answer to each question."""
    found: list[list[float]] = []
    for begin in range(0, len(pairs), BATCH):
        output = predictor.forward(_inputs(predictor, pairs[begin : begin + BATCH]))
        found += output.logits[:, 0].float().softmax(-1).tolist()
    return found


def _look(predictor: Predictor, text: str, question: str, sites: Sequence[str] | None = None) -> tuple[Any, list[str]]:
    """A look at one question, and what to call the places of the text."""
    with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
        predictor.model(**predictor.on_device(_inputs(predictor, [(text, question)])))
    (tokens,) = predictor.processor.tokens([text])
    return sight, predictor.processor.tokenizer.pieces(tokens)


def _share_in_sentence(predictor: Predictor, examples: Sequence[TextQuestion]) -> float:
    """The mean weight of the sentence that has the answer; sentences end with a full stop."""
    with torch.inference_mode(), look(predictor.model) as sight:
        predictor.forward(_inputs(predictor, [(one.text, one.question) for one in examples]))
    weights = sight[sight.sites[-1]].weights()[:, 0, 0].float().cpu()
    total = 0.0
    for one, row in zip(examples, weights, strict=True):
        pieces = predictor.processor.tokenizer.pieces(predictor.processor.tokens([one.text])[0])
        sentence = 0
        for piece, weight in zip(pieces, row.tolist()[: len(pieces)], strict=True):
            total += weight * (sentence == one.sentence)
            sentence += piece.strip("·") == "."
    return total / len(examples)
