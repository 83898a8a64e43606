"""Tuning a language model to please a reward model, without going far from where it began (RLHF)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from torch import nn

from foveate.contracts import Batch, Output
from foveate.data.dataset import Dataset
from foveate.data.text.conversations import holds_conversations, read_questions_to_answer
from foveate.data.text.documents import Passage, Prose
from foveate.data.text.files import digest
from foveate.errors import UserError, at_least
from foveate.forms.tuned import ReadTunedPrompt, SampledText
from foveate.models.text import CAUSAL
from foveate.run_dir import WEIGHTS
from foveate.tasks.recipe import Recipe, TableExamples
from foveate.tasks.task import Task
from foveate.tasks.tuning.common import LanguageRun, TunedModel, check_rewards, load_reward, rewards
from foveate.tasks.tuning.rollouts import RolloutBatches
from foveate.training import Batches, Training
from foveate.training.objectives.objective import Loss
from foveate.training.objectives.preferences import ClippedPolicyGradient, PolicyGradient

JUDGED = 64
"""Sentences that the reward model is tried on."""


@dataclass
class PleaseReward:
    """What is learned from the rewards of texts."""

    reward: Path = Path("runs/reward")
    """Folder of the reward model: `foveate train reward`."""
    kl_weight: float = 0.1
    """What a nat of distance from the first model costs."""
    samples: int = 4
    """Texts that are written for each prompt, and compared."""
    method: Literal["rloo", "ppo"] = "rloo"
    """One step on each batch of texts (RLOO), or --passes steps, each clipped (PPO)."""
    passes: int = 4
    """With ppo: steps on the same texts."""
    clip_ratio: float = 0.2
    """With ppo: a token's probability may change by this share before its gradient stops."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(0, "kl_weight", self.kl_weight)
        at_least(1, "passes", self.passes)
        at_least(2, "samples", self.samples)
        if not 0 < self.clip_ratio < 1:
            raise UserError(f"clip_ratio is {self.clip_ratio}, but must be above 0 and below 1")
        load_reward(self.reward)

    def check_training(self, training: Training) -> None:
        """Raise UserError where a training could stop between two steps on the same texts."""
        for name in ("save_every", "validate_every"):
            if getattr(training, name) % self.steps:
                raise UserError(
                    f"{name} is {getattr(training, name)}, but must be a multiple of the {self.steps} passes: "
                    f"a resumed training writes its texts anew"
                )

    @property
    def steps(self) -> int:
        """Steps on the same texts."""
        return self.passes if self.method == "ppo" else 1

    def contents(self) -> dict[str, str]:
        """A digest of the reward model."""
        return {str(self.reward): digest(self.reward / WEIGHTS)}

    def __call__(self, output: Output, batch: Batch) -> Loss:
        return (ClippedPolicyGradient(self.clip_ratio) if self.method == "ppo" else PolicyGradient())(output, batch)


class RewardTunedModel(TunedModel):
    """A language model that was tuned to please a reward model."""

    @cached_property
    def judge(self) -> Any:
        """The reward model."""
        return load_reward(self.recipe.objective.reward)

    def batches(self, train: Dataset[Passage]) -> Batches:
        """Texts that the model itself writes, each batch when it is asked for."""
        chosen: PleaseReward = self.recipe.objective
        tried = [example.question or example.text for example in islice(train, JUDGED)]
        check_rewards(self.judge, tried, chosen.reward)
        return RolloutBatches(
            self.model,
            self.base,
            self.tokenizer,
            lambda texts: rewards(self.judge, texts),
            [*map(self.prompt, self._prompts(train))],
            *(self.recipe.examples.batch, chosen.samples, self.processor.writes.max_tokens, chosen.kl_weight),
            *(self.recipe.training.seed, chosen.steps),
        )

    def measure(
        self, examples: Sequence[Passage], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        return self._measured(self.model, examples, options)

    def baselines(self, examples: Sequence[Passage], options: Any) -> dict[str, dict[str, float]]:
        """The model from which the tuning began."""
        return {self.before: self._measured(self.author.model, examples, options)[1]}

    def _measured(
        self, model: nn.Module, examples: Sequence[Passage], options: Any
    ) -> tuple[list[str], dict[str, float]]:
        """Texts for the prompts of the examples, and what they are worth."""
        chosen: PleaseReward = self.recipe.objective
        texts, metrics = self.written(model, self._prompts(examples), options, chosen.reward)
        return texts, {"objective": metrics["reward"] - chosen.kl_weight * metrics["kl"], **metrics}

    def _prompts(self, examples: Any) -> list[Any]:
        return [self.processor.reads.value(example) for example in examples]


def sentences_of(prose: Prose, recipe: Recipe) -> Dataset[Passage]:
    """The sentences of some prose, whose first words are prompts. Raises UserError where none is long enough."""
    words = recipe.reads.prompt_words
    found = [one for one in prose.sentences() if len(one.text.split()) > words]
    if not found:
        raise UserError(f"{prose.name}: no sentence has more than {words} words")
    return Dataset(prose.name, found, "prompts")


def read_prompts(paths: Sequence[Path], recipe: Recipe) -> Dataset[Passage]:
    """The sentences of prose, or what files of JSON have: messages that are to be answered, texts to go on from.

    Raises UserError as both.
    """
    if holds_conversations(paths):
        return read_questions_to_answer(paths)
    return sentences_of(Prose.from_paths(paths), recipe)


TASK = Task(
    name="rlhf",
    about="""Tune a language model so that what it writes gets large rewards.

    Several texts are written for each prompt; each is made more probable by as much as its reward is above the mean of
    the others (RLOO). The reward is reduced by how much more probable the text has become than it was to the model from
    which the tuning began (KL), times --kl-weight. With --method ppo, several steps learn from the same texts, and a
    step that would change the probability of a token too much is clipped.""",
    families=CAUSAL,
    reads=ReadTunedPrompt(),
    writes=SampledText(),
    objective=PleaseReward(),
    read=read_prompts,
    arrange=sentences_of,
    files="FILE ...",
    layout="Prose whose sentences begin with the prompts: plain text files (or .gz) or folders of .txt files. Or "
    "conversations, whose last message of the user is answered, or "
    "texts to go on from: JSON lines whose prompt is a list of messages, or a text.",
    examples=TableExamples(batch=16, validation_examples=100),
    model="gpt-tiny",
    training=Training(
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
    ),
    start=LanguageRun(),
    unit="texts",
    skill=lambda: RewardTunedModel,
)
