"""Tuning a language model to please a reward model, without going far from where it began (RLHF)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from torch import nn

from foveate import models, tasks
from foveate.bundle import WEIGHTS
from foveate.contracts import Tokenizer
from foveate.data import Prose, Splits, open_source
from foveate.data.dataset import Dataset
from foveate.data.lines import digest
from foveate.data.prose import Passage
from foveate.data.tokenizer_processor import TokenizerProcessor
from foveate.errors import UserError, at_least
from foveate.tasks.predictor import Measured, Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.reward import rewards
from foveate.tasks.rollouts import RolloutBatches, distinct, write
from foveate.tasks.task import Examples, Task
from foveate.tasks.trained import NoOptions, check_positions
from foveate.training import Batches, Objective, Training
from foveate.training.preferences import PolicyGradient
from foveate.training.settings import check_seed


@dataclass
class Prompts(Examples):
    """Prose whose sentences begin with the prompts: plain text files (or .gz) or folders of .txt files."""

    prompt_words: int = 2
    """A prompt is so many words, the first of a sentence."""
    batch: int = 16
    """Prompts of a batch."""
    samples: int = 4
    """Texts that are written for each prompt, and compared."""
    max_tokens: int = 24
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
class Drawing:
    """How texts are drawn."""

    seed: int = 1
    """Seed of random draws."""
    judge: Path | None = None
    """With `foveate eval`: a classifier, whose share of texts labelled "positive" is measured too."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_seed(self.seed)


@dataclass
class WrittenText:
    """What was written for a prompt."""

    line: str


@dataclass
class TrainRLHF(Task[Architecture]):
    """Tune a language model so that what it writes gets large rewards.

    Several texts are written for each prompt; each is made more probable by as much as its reward is above the mean of
    the others (RLOO). The reward is reduced by how much more probable the text has become than it was to the model from
    which the tuning began (KL), times --kl-weight.
    """

    task = "rlhf"
    metric = "objective"
    unit = "texts"
    files = "FILE ..."
    processor = TokenizerProcessor
    options = Drawing
    usual = Training(
        steps=150,
        learning_rate=1e-4,
        schedule="constant",
        warmup=10,
        weight_decay=0.0,
        average=1,
        validate_every=25,
        save_every=25,
        log_every=5,
        precision="float32",
    )

    examples: Annotated[Prompts, tyro.conf.arg(name="")] = field(default_factory=Prompts)
    base: Annotated[Path, tyro.conf.arg(name="from")] = Path("runs/language")
    """Folder of the language model to begin from: `foveate train language`."""
    reward: Path = Path("runs/reward")
    """Folder of the reward model: `foveate train reward`."""
    kl_weight: float = 0.1
    """What a nat of distance from the first model costs."""
    model: str = "gpt-tiny"
    """The preset of the language model to begin from; its sizes are taken from its folder."""
    out: Path = Path("runs/rlhf")
    """Folder for the tuned model; a training that it holds is resumed."""

    def check(self) -> None:
        super().check()
        at_least(0, "kl_weight", self.kl_weight)
        if self.preset.family != (found := self.author.description["family"]):
            raise UserError(f"{self.base} holds a model of the family {found}, but only gpt can be tuned so far")

    @cached_property
    def author(self) -> Predictor:
        """The language model to begin from. Raises UserError for a folder of another task."""
        return _loaded(self.base, "language", "--from takes a language model")

    @cached_property
    def judge(self) -> Predictor:
        """The reward model."""
        return _loaded(self.reward, "reward", "--reward takes a reward model")

    def read(self, paths: Sequence[Path]) -> Dataset[Passage]:
        return self.examples.of_prose(Prose.from_paths(paths))

    def open_source(self, name: str) -> Splits[Any]:
        splits = open_source(name, task=self.task)
        return Splits(*map(self.examples.of_prose, (splits.train, splits.dev, splits.test)))

    def identity(self) -> dict[str, Any]:
        begun = {"base": digest(self.base / WEIGHTS), "reward": digest(self.reward / WEIGHTS)}
        return super().identity() | begun | {"kl_weight": self.kl_weight}

    def fit(self, learn: Dataset[Passage]) -> TokenizerProcessor:
        return TokenizerProcessor(self.author.processor.tokenizer)

    @cached_property
    def _policy(self) -> nn.Module:
        """A copy of the first model without dropout: what is drawn is what is learned from."""
        base: Any = self.author.model
        dropped = {name: 0.0 for name in vars(base.config) if name.endswith("dropout")}
        model = models.build(self.preset.family, replace(base.config, **dropped))
        model.load_state_dict(base.state_dict())
        return model

    def _model(self, sizes: Mapping[str, int]) -> nn.Module:
        return self._policy

    def batches(self, learn: Dataset[Passage], processor: Any) -> Batches:
        chosen = self.examples
        return RolloutBatches(
            self._policy,
            self.author.model,
            processor.tokenizer,
            lambda texts: rewards(self.judge, texts),
            self._prompts(learn, processor.tokenizer),
            *(chosen.batch, chosen.samples, chosen.max_tokens, self.kl_weight, self.training.seed),
        )

    def objective(self) -> Objective:
        return PolicyGradient()

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Drawing) -> list[WrittenText]:
        """What the tuned model draws for each prompt."""
        options.check()
        tokenizer = predictor.processor.tokenizer
        prompts = tokenizer.encode(list(texts))
        check_positions(predictor.model, texts, enumerate(map(len, prompts)), 1 + self.examples.max_tokens)
        generator = torch.Generator().manual_seed(options.seed)
        model = predictor.model
        found = write(model, model, tokenizer, prompts, 1, self.examples.max_tokens, generator)
        return [WrittenText(text) for text in found.texts]

    def measure(self, predictor: Predictor, examples: Sequence[Passage], options: Drawing) -> Measured:
        texts, metrics = self._measured(predictor.model, predictor, examples, options)
        return Measured(texts, metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[Passage], options: Drawing
    ) -> dict[str, dict[str, float]]:
        """The model from which the tuning began."""
        return {f"before, {self.base}": self._measured(self.author.model, predictor, examples, options)[1]}

    def _measured(
        self, model: nn.Module, predictor: Predictor, examples: Sequence[Passage], options: Drawing
    ) -> tuple[list[str], dict[str, float]]:
        """Texts for the prompts of the examples, and what they are worth."""
        tokenizer = predictor.processor.tokenizer
        generator = torch.Generator().manual_seed(options.seed)
        prompts = self._prompts(examples, tokenizer)
        found = write(model, self.author.model, tokenizer, prompts, 1, self.examples.max_tokens, generator)
        reward, kl = sum(rewards(self.judge, found.texts)) / len(prompts), float(found.kl.mean())
        metrics = {
            "objective": reward - self.kl_weight * kl,
            "reward": reward,
            "kl": kl,
            "length": float(found.length.float().mean()),
            "distinct_2": distinct(found.texts),
        }
        if options.judge is not None:
            decisions = _loaded(options.judge, "classify", "--judge takes a classifier").answer(
                found.texts, NoOptions()
            )
            metrics["positive"] = 100 * sum(one.label == "positive" for one in decisions) / len(decisions)
        return found.texts, metrics

    def _prompts(self, examples: Any, tokenizer: Tokenizer) -> list[list[int]]:
        count = self.examples.prompt_words
        return tokenizer.encode([" ".join(example.text.split()[:count]) for example in examples])


def _loaded(folder: Path, task: str, advice: str) -> Any:
    """What was trained in a folder. Raises UserError where it is of another task."""
    found = tasks.load(folder)
    if found.description["task"] != task:
        raise UserError(f"{folder} was trained for the task {found.description['task']}; {advice}")
    return found
