"""Classification: a whole text gets one of several labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from foveate.baselines.word_counts import labels_by_counting
from foveate.data.text.labelled import LabelledText
from foveate.forms.label import Label
from foveate.forms.text import Text
from foveate.models.text import CAUSAL
from foveate.tasks.labeller import Labeller
from foveate.tasks.recipe import TableExamples
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


class Classifier(Labeller):
    """A classifier of texts."""

    compared = 50_000

    def text_of(self, example: Any) -> str:
        """The text whose words are counted."""
        return str(example.text)

    def simple_ways(
        self, known: Sequence[Any], labels: Sequence[Sequence[str]], asked: Sequence[Any]
    ) -> Mapping[str, Sequence[Sequence[str]]]:
        """What counting words finds."""
        texts, others = ([self.text_of(one) for one in side] for side in (known, asked))
        return labels_by_counting(texts, labels, others, self.processor.writes.several)


TASK = Task(
    name="classify",
    about="Train a classifier, which gives a whole text one of several labels.",
    families=("rnn-encoder", "transformer-encoder", "ngram-bag", "bert", "deberta", *CAUSAL, "xlnet"),
    head="text",
    reads=Text(),
    writes=Label(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: LabelledText.from_paths(paths),
    files="FILE",
    layout="Your own text: a file with label<TAB>text on each line; plain or .gz.",
    examples=TableExamples(batch=2048),
    model="rnn-attentive-classifier",
    training=Training(
        usual_epochs=5,
        learning_rate=2e-3,
        schedule="linear",
        usual_warmup=100,
        validate_every=50,
        save_every=50,
    ),
    start=LanguageModelBody(),
    usual_start="minilm",
    unit="texts",
    skill=lambda: Classifier,
)
