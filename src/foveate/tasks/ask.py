"""Answers to questions about texts: a query from outside, given at run time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from foveate.data.text.facts import TextQuestion, text_questions
from foveate.data.text.layouts import ASKED
from foveate.forms.form import setting_names
from foveate.forms.span import AskedRow, Spans
from foveate.forms.text_question import AskedText, TextAnswer, share_in_sentence
from foveate.tasks.recipe import TableExamples
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights, RunOrBody
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training

LOOKED_AT = 256
"""Questions whose attention is compared with the sentences of their answers, when a model is measured."""


class Answerer(Skill):
    """A model that answers questions about texts: one question for all of them, or one for each."""

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """The answer to the query about each text, or to the question that a text ends with."""
        options = options or self.options_with()
        if query := options.query.strip():
            given = [f"{one}\t{query}" if isinstance(one, str | Path) and str(one).strip() else one for one in given]
        return super().answer(given, options)

    def measure(
        self, examples: Sequence[TextQuestion], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """The share of right answers, of each kind of question, and the share of the attention that is in the sentence
        with the answer, where it is known."""
        lines, metrics = super().measure(examples, options, console)
        marked = [one for one in examples if one.sentence is not None][:LOOKED_AT]
        if marked and isinstance(self.processor.writes, TextAnswer):
            metrics["attention_in_sentence"] = 100 * self._share_in_sentence(marked)
        return lines, metrics

    def _share_in_sentence(self, examples: Sequence[TextQuestion]) -> float:
        """The mean weight of the sentence that has the answer."""
        reads: AskedText = self.processor.reads
        prepared = [self.fit(reads.value(one)).prepared for one in examples]
        sight = self.watch(reads.tensors(prepared)[0])
        weights = sight[sight.sites[-1]].weights()[:, 0, 0].float().tolist()
        rows = zip(map(reads.names, prepared), weights, examples, strict=True)
        shares = [share_in_sentence(names, row[: len(names)], one.sentence or 0) for names, row, one in rows]
        return sum(shares) / len(shares)


def _forms_for(reads: Any, writes: Any, architecture: Any) -> tuple[Any, Any]:
    """A masked model reads the question and the text in one row, and answers with a part of the text."""
    if getattr(architecture, "head", None) != "span" or isinstance(reads, AskedRow):
        return reads, writes
    return AskedRow(**{name: getattr(reads, name) for name in setting_names(type(reads))}), Spans()


TASK = Task(
    name="ask",
    also="reading comprehension",
    about="""Train a model that answers questions about texts.

    An attentive reader answers with a word of training. A BERT, --from trained weights, answers with a part of the
    text.

    `foveate run RUN "Ada went to the kitchen. Ben ran to the barn." --query "Where is Ada?"` then answers.""",
    families=("attentive-reader", "bert", "deberta"),
    head="span",
    reads=AskedText(),
    writes=TextAnswer(),
    forms_for=_forms_for,
    objective=CrossEntropy(),
    read=lambda paths, recipe: text_questions(paths),
    files="TABLE",
    layout="Your own questions: a table with text<TAB>question<TAB>answer on each line.",
    layouts=ASKED,
    examples=TableExamples(batch=64, validation_examples=1000),
    model="attentive-reader-tiny",
    training=Training(
        usual_epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=100,
        validate_every=200,
        save_every=200,
    ),
    start=RunOrBody(AllWeights(grows="classes", examples=("tokens", "vocabulary", "lowercase"))),
    unit="questions",
    skill=lambda: Answerer,
)
