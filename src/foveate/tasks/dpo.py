"""Tuning a language model by pairs of texts of which people like the first one better (DPO)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from torch import nn

from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.text.preferences import Preference, WrittenPreferenceProcessor, read_preferences
from foveate.errors import UserError, at_least
from foveate.nn import longest_sequence
from foveate.tasks.examples.example_source import Examples
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.tuning.common import Drawing, Tuning, first_words, load_reward
from foveate.tasks.tuning.rollouts import ReferenceBatches, token_log_probs
from foveate.training import Batches, Objective
from foveate.training.objectives.preferences import DirectPreference

MEASURED_PAIRS = 64
"""Pairs that are measured together."""


@dataclass
class Pairs(Examples):
    """Which pairs to learn from, better<TAB>worse on each line."""

    batch: int = 2048
    """Tokens of a batch."""
    prompt_words: int = 2
    """The tuned model is measured on prompts of so many words, the first of each text."""
    validation_examples: int = 200

    def check(self) -> None:
        super().check()
        at_least(1, "prompt_words", self.prompt_words)


@dataclass
class DrawingAfterPairs(Drawing):
    """How texts are drawn, and what measures them."""

    reward: Path | None = None
    """With `foveate eval`: a reward model, whose mean reward is measured too."""


@dataclass
class TrainDPO(Tuning[Architecture]):
    """Tune a language model by pairs of texts, without a reward model.

    The better text of each pair is made more probable than it was to the first model, and the worse one less, until the
    difference is large enough for --beta (DPO). A smaller beta lets the model go further from where it began.
    """

    task = "dpo"
    files = "FILE"
    processor = WrittenPreferenceProcessor
    options = DrawingAfterPairs
    default_training = Training(
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
    )

    examples: Annotated[Pairs, tyro.conf.arg(name="")] = field(default_factory=Pairs)
    beta: float = 0.1
    """What distance from the first model costs."""
    out: Path = Path("runs/dpo")
    """Folder for the tuned model; a training that it holds is resumed."""

    def check(self) -> None:
        super().check()
        if not self.beta > 0:
            raise UserError(f"beta is {self.beta}, but must be above 0")

    def read(self, paths: Sequence[Path]) -> Dataset[Preference]:
        return read_preferences(paths)

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"beta": self.beta}

    def fit(self, train: Dataset[Preference]) -> WrittenPreferenceProcessor:
        return self._processor(self.author.processor.tokenizer, self.author.model)

    def batches(self, train: Dataset[Preference], processor: Any) -> Batches:
        pairs = BucketedBatches(OneBucket(train, processor), self.examples.batch, self.training.seed)
        return ReferenceBatches(pairs, self.author.model)

    def objective(self) -> Objective:
        return DirectPreference(self.beta)

    def measure(self, predictor: Predictor, examples: Sequence[Preference], options: DrawingAfterPairs) -> Measured:
        """The share of pairs whose better text became more probable than the worse one, and what the model writes."""
        return Measured(*self._measured(predictor.model, predictor, examples, options))

    def baselines(
        self, predictor: Predictor, examples: Sequence[Preference], options: DrawingAfterPairs
    ) -> dict[str, dict[str, float]]:
        """The model from which the tuning began: it has changed no probability, so that half of the pairs are right."""
        before = self._measured(self.author.model, predictor, examples, options)[1]
        return {f"before, {self.start}": before | {"accuracy": 50.0}}

    def _measured(
        self, model: nn.Module, predictor: Predictor, examples: Sequence[Preference], options: DrawingAfterPairs
    ) -> tuple[list[str], dict[str, float]]:
        texts = dict.fromkeys(text for example in examples for text in (example.better, example.worse))
        prompts = [first_words(text, self.examples.prompt_words) for text in texts]
        judge = None if options.reward is None else load_reward(options.reward)
        drawn, metrics = self.written(model, predictor, prompts, options, judge)
        return drawn, {"accuracy": self._accuracy(model, predictor, examples), **metrics}

    def _accuracy(self, model: nn.Module, predictor: Predictor, examples: Sequence[Preference]) -> float:
        processor = self._processor(predictor.processor.tokenizer, self.author.model)
        prepared = processor.prepare(Dataset("pairs", list(examples), "pairs"))
        right = 0
        for start in range(0, len(prepared), MEASURED_PAIRS):
            batch = processor.batch(prepared[start : start + MEASURED_PAIRS], None)
            own, other = (
                token_log_probs(each, batch.inputs, batch.labels).sum(1) for each in (model, self.author.model)
            )
            better, worse = (own - other).view(-1, 2).unbind(1)
            right += int((better > worse).sum())
        return 100 * right / len(prepared)

    @staticmethod
    def _processor(tokenizer: Any, model: nn.Module) -> WrittenPreferenceProcessor:
        longest = longest_sequence(model)
        return WrittenPreferenceProcessor(tokenizer, None if math.isinf(longest) else int(longest))
