"""Tuning a language model to please a reward model, without going far from where it began (RLHF)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from torch import nn

from foveate.bundle import WEIGHTS
from foveate.data import Prose, Splits, open_source
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.data.text.files import digest
from foveate.data.tokens.tokenizer_processor import TokenizerProcessor
from foveate.errors import UserError, at_least
from foveate.tasks.examples.example_source import Examples
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.reward import check_rewards, rewards
from foveate.tasks.tuning.common import MAX_TOKENS, Drawing, Tuning, first_words, load_reward
from foveate.tasks.tuning.rollouts import RolloutBatches
from foveate.training import Batches, Objective
from foveate.training.objectives.preferences import ClippedPolicyGradient, PolicyGradient

JUDGED = 64
"""Sentences that the reward model is tried on."""


@dataclass
class Prompts(Examples):
    """Prose whose sentences begin with the prompts: plain text files (or .gz) or folders of .txt files."""

    prompt_words: int = 2
    """A prompt is so many words, the first of a sentence."""
    batch: int = 16
    """Prompts of a batch."""
    samples: int = 4
    """Texts that are written for each prompt, and compared."""
    max_tokens: int = MAX_TOKENS
    """Tokens of a text, at most."""
    validation_examples: int = 100
    """Prompts that each validation writes texts for."""

    def check(self) -> None:
        super().check()
        for name in ("prompt_words", "max_tokens"):
            at_least(1, name, getattr(self, name))
        at_least(2, "samples", self.samples)

    def of_prose(self, prose: Prose) -> Dataset[Passage]:
        """The sentences, each by itself."""
        found = [one for one in prose.sentences() if len(one.text.split()) > self.prompt_words]
        if not found:
            raise UserError(f"{prose.name}: no sentence has more than {self.prompt_words} words")
        return Dataset(prose.name, found, "prompts")


@dataclass
class TrainRLHF(Tuning[Architecture]):
    """Tune a language model so that what it writes gets large rewards.

    Several texts are written for each prompt; each is made more probable by as much as its reward is above the mean of
    the others (RLOO). The reward is reduced by how much more probable the text has become than it was to the model from
    which the tuning began (KL), times --kl-weight. With --method ppo, several steps learn from the same texts, and a
    step that would change the probability of a token too much is clipped.
    """

    task = "rlhf"
    metric = "objective"
    files = "FILE ..."
    processor = TokenizerProcessor
    default_training = Training(
        steps=150,
        learning_rate=1e-4,
        schedule="constant",
        usual_warmup=10,
        weight_decay=0.0,
        average=1,
        validate_every=25,
        save_every=25,
        log_every=5,
        precision="float32",
    )

    examples: Annotated[Prompts, tyro.conf.arg(name="")] = field(default_factory=Prompts)
    reward: Path = Path("runs/reward")
    """Folder of the reward model: `foveate train reward`."""
    kl_weight: float = 0.1
    """What a nat of distance from the first model costs."""
    method: Literal["rloo", "ppo"] = "rloo"
    """One step on each batch of texts (RLOO), or --passes steps, each clipped (PPO)."""
    passes: int = 4
    """With ppo: steps on the same texts."""
    clip_ratio: float = 0.2
    """With ppo: a token's probability may change by this share before its gradient stops."""
    out: Path = Path("runs/rlhf")
    """Folder for the tuned model; a training that it holds is resumed."""

    def check(self) -> None:
        super().check()
        self.judge  # noqa: B018, raises UserError
        at_least(0, "kl_weight", self.kl_weight)
        at_least(1, "passes", self.passes)
        if not 0 < self.clip_ratio < 1:
            raise UserError(f"clip_ratio is {self.clip_ratio}, but must be above 0 and below 1")
        for name in ("save_every", "validate_every"):
            if getattr(self.training, name) % self._passes:
                raise UserError(
                    f"{name} is {getattr(self.training, name)}, but must be a multiple of the {self._passes} passes: "
                    f"a resumed training writes its texts anew"
                )

    @property
    def _passes(self) -> int:
        return self.passes if self.method == "ppo" else 1

    @property
    def max_tokens(self) -> int:
        return self.examples.max_tokens

    @cached_property
    def judge(self) -> Predictor:
        """The reward model."""
        return load_reward(self.reward)

    def read(self, paths: Sequence[Path]) -> Dataset[Passage]:
        return self.examples.of_prose(Prose.from_paths(paths))

    def open_source(self, name: str) -> Splits[Any]:
        splits = open_source(name, task=self.task)
        return Splits(*map(self.examples.of_prose, (splits.train, splits.dev, splits.test)))

    def identity(self) -> dict[str, Any]:
        way = {} if self.method == "rloo" else {"method": self.method, "passes": self.passes, "clip": self.clip_ratio}
        return super().identity() | {"reward": digest(self.reward / WEIGHTS), "kl_weight": self.kl_weight} | way

    def fit(self, train: Dataset[Passage]) -> TokenizerProcessor:
        return TokenizerProcessor(self.author.processor.tokenizer)

    def batches(self, train: Dataset[Passage], processor: Any) -> Batches:
        chosen = self.examples
        check_rewards(self.judge, [example.text for example in islice(train, JUDGED)], self.reward)
        return RolloutBatches(
            self.policy,
            self.author.model,
            processor.tokenizer,
            lambda texts: rewards(self.judge, texts),
            processor.tokenizer.encode(self._prompts(train)),
            *(chosen.batch, chosen.samples, chosen.max_tokens, self.kl_weight, self.training.seed, self._passes),
        )

    def objective(self) -> Objective:
        return ClippedPolicyGradient(self.clip_ratio) if self.method == "ppo" else PolicyGradient()

    def measure(self, predictor: Predictor, examples: Sequence[Passage], options: Drawing) -> Measured:
        return Measured(*self._measured(predictor.model, predictor, examples, options))

    def baselines(
        self, predictor: Predictor, examples: Sequence[Passage], options: Drawing
    ) -> dict[str, dict[str, float]]:
        """The model from which the tuning began."""
        return {f"before, {self.start}": self._measured(self.author.model, predictor, examples, options)[1]}

    def _measured(
        self, model: nn.Module, predictor: Predictor, examples: Sequence[Passage], options: Drawing
    ) -> tuple[list[str], dict[str, float]]:
        """Texts for the prompts of the examples, and what they are worth."""
        texts, metrics = self.written(model, predictor, self._prompts(examples), options, self.judge)
        return texts, {"objective": metrics["reward"] - self.kl_weight * metrics["kl"], **metrics}

    def _prompts(self, examples: Any) -> list[str]:
        return [first_words(example.text, self.examples.prompt_words) for example in examples]
