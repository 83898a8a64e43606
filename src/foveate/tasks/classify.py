"""Classification: a whole text gets one of several labels."""

from collections.abc import Sequence
from typing import Any

from foveate.baselines.word_counts import labels_by_counting
from foveate.data.text.labelled import Labelled, LabelledText
from foveate.forms.label import Label, label_metrics
from foveate.forms.text import Text
from foveate.models.text import CAUSAL
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Examples, Task
from foveate.tasks.training_data import lost
from foveate.training import CrossEntropy, Training

COUNTED = 50_000
"""Texts, from all over the training text, whose words are counted to compare a model with, at most."""


class Classifier(Skill):
    """A classifier of texts."""

    def baselines(self, examples: Sequence[Labelled], options: Any) -> dict[str, dict[str, float]]:
        """What counting words finds, where the training text is still there, and the most frequent label."""
        found = {}
        if not lost(self):
            known, right = self.train_examples().some(COUNTED), [one.label for one in examples]
            texts, labels = [one.text for one in known], [one.label for one in known]
            ways = labels_by_counting(texts, labels, [one.text for one in examples])
            found = {way: label_metrics(answers, right) for way, answers in ways.items()}
        return {**found, **super().baselines(examples, options)}

    def notes(self, examples: Sequence[Labelled]) -> list[str]:
        why = lost(self)
        return [*super().notes(examples), *([f"no counted words to compare with: {why}"] if why else [])]


TASK = Task(
    name="classify",
    about="Train a classifier, which gives a whole text one of several labels.",
    families=("rnn-encoder", "transformer-encoder", "bert", "deberta", *CAUSAL, "xlnet"),
    head="text",
    reads=Text(),
    writes=Label(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: LabelledText.from_paths(paths),
    files="FILE",
    layout="Your own text: a file with label<TAB>text on each line; plain or .gz.",
    examples=Examples(batch=2048),
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
    unit="texts",
    skill=lambda: Classifier,
)
