"""Tuning a language model by pairs of texts of which people like the first one better (DPO)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import nn

from foveate.accelerator import device_of
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.text.preferences import Preference, PreferenceBatching, read_preferences
from foveate.forms.tuned import PairTunedText, ReadTunedPrompt, first_words
from foveate.models.text import CAUSAL
from foveate.nn import longest_sequence
from foveate.tasks.recipe import TableExamples
from foveate.tasks.task import Task
from foveate.tasks.tuning.common import LanguageRun, TunedModel
from foveate.tasks.tuning.rollouts import ReferenceBatches, token_log_probs
from foveate.training import Batches, Training
from foveate.training.objectives.preferences import DirectPreference

MEASURED_PAIRS = 64
"""Pairs that are measured together."""


class PairTunedModel(TunedModel):
    """A language model that was tuned by pairs of texts."""

    @property
    def pairs(self) -> PreferenceBatching:
        """What makes batches of pairs."""
        longest = longest_sequence(self.model)
        return PreferenceBatching(self.tokenizer, None if math.isinf(longest) else int(longest))

    def batches(self, train: Dataset[Preference]) -> Batches:
        different = self.pairs.different(train)
        buckets = OneBucket(different, self.pairs, different.report if different is not train else "")
        pairs = BucketedBatches(buckets, self.recipe.examples.batch, self.recipe.training.seed)
        return ReferenceBatches(pairs, self.base, self.model)

    def test_examples(self, data: Sequence[Path], options: Any) -> Dataset[Preference]:
        return self.pairs.different(super().test_examples(data, options))

    def examples_to_validate(self, validation: Dataset[Preference], console: Console) -> Sequence[Preference]:
        """Pairs of any length: the beginnings of long texts are read."""
        some = Dataset(validation.name, validation.some(self.recipe.examples.validation_examples), validation.unit)
        different = self.pairs.different(some)
        if different is not some:
            console.print(different.report, markup=False, highlight=False)
        return [*different]

    def measure(
        self, examples: Sequence[Preference], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """The share of pairs whose better text became more probable than the worse one, and what the model writes."""
        return self._measured(self.model, examples, options)

    def baselines(self, examples: Sequence[Preference], options: Any) -> dict[str, dict[str, float]]:
        """The model from which the tuning began: it has changed no probability, so that half of the pairs are right."""
        before = self._measured(self.author.model, examples, options)[1]
        return {self.before: before | {"accuracy": 50.0}}

    def _measured(
        self, model: nn.Module, examples: Sequence[Preference], options: Any
    ) -> tuple[list[str], dict[str, float]]:
        asked = dict.fromkeys(one for example in examples for one in self._prompted(example))
        prompts = [
            first_words(one, self.processor.reads.prompt_words) if isinstance(one, str) else one for one in asked
        ]
        drawn, metrics = self.written(model, prompts, options, options.reward)
        written = dict(zip(asked, drawn, strict=True))
        lines = ["\t".join(written[one] for one in self._prompted(example)) for example in examples]
        return lines, {"accuracy": self._accuracy(model, examples), **metrics}

    @staticmethod
    def _prompted(example: Preference) -> tuple[Any, ...]:
        """What the model writes after: the beginnings of both texts, or the messages that both answer."""
        return (example.better, example.worse) if example.question is None else (example.question,)

    def _accuracy(self, model: nn.Module, examples: Sequence[Preference]) -> float:
        pairs, right = self.pairs, 0
        prepared = pairs.prepare(Dataset("pairs", list(examples), "pairs"))
        for start in range(0, len(prepared), MEASURED_PAIRS):
            batch = pairs.batch(prepared[start : start + MEASURED_PAIRS], None)
            own, other = (
                token_log_probs(each, batch.inputs, batch.labels, device_of(model)).sum(1)
                for each in (model, self.base)
            )
            better, worse = (own - other).view(-1, 2).unbind(1)
            right += int((better > worse).sum())
        return 100 * right / len(prepared)


TASK = Task(
    name="dpo",
    about="""Tune a language model by pairs of texts, without a reward model.

    The better text of each pair is made more probable than it was to the first model, and the worse one less, until the
    difference is large enough for --beta (DPO). A smaller beta lets the model go further from where it began.""",
    families=CAUSAL,
    reads=ReadTunedPrompt(),
    writes=PairTunedText(),
    objective=DirectPreference(),
    read=lambda paths, recipe: read_preferences(paths),
    files="FILE",
    layout="Your own pairs: better<TAB>worse on each line. Or answers in conversations, as trl has them: JSON lines "
    "with lists of messages, prompt, chosen and rejected.",
    examples=TableExamples(batch=2048, validation_examples=200),
    model="gpt-tiny",
    training=Training(
        epochs=1,
        learning_rate=1e-4,
        schedule="linear",
        usual_warmup=10,
        weight_decay=0.0,
        average=1,
        validate_every=50,
        save_every=50,
        log_every=10,
        precision="float32",
    ),
    start=LanguageRun(),
    unit="texts",
    skill=lambda: PairTunedModel,
)
