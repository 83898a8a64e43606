"""What the ways to tune a language model by preferences have in common: where they begin, and how what the tuned model
writes is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
import tyro
from torch import nn

from foveate import tasks
from foveate.errors import UserError
from foveate.forms.checks import check_positions
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Architecture
from foveate.tasks.former.task import Task
from foveate.tasks.protocols import NoOptions
from foveate.tasks.reward import rewards
from foveate.tasks.start.parts import WholeRun
from foveate.tasks.tuning.rollouts import distinct, write
from foveate.training.settings import check_seed

Kind = TypeVar("Kind", bound="Tuning")

FromLanguageRun = Annotated[
    Path | None,
    tyro.conf.arg(name="from", help="Folder of the language model to begin from: `foveate train language`."),
]

MAX_TOKENS = 24
"""Tokens of a text that is written, at most."""


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
class Tuning(Task[Architecture]):
    """A task that begins from a trained language model."""

    unit = "texts"
    options = Drawing
    start_parts = WholeRun(of="language")

    start: FromLanguageRun = None
    model: str = "gpt-tiny"
    """The preset of the language model to begin from; its sizes are taken from its folder."""

    def __post_init__(self) -> None:
        """Without dropout: what is drawn is what is learned from."""
        super().__post_init__()
        config: Any = self.architecture
        self.architecture = replace(config, **{name: 0.0 for name in vars(config) if name.endswith("dropout")})

    @classmethod
    def from_json(cls: type[Kind], values: dict[str, Any], where: str) -> Kind:
        before = {"start": values["base"]} if "base" in values else {}  # the name of earlier versions
        return super().from_json({name: one for name, one in values.items() if name != "base"} | before, where)

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that is written, at most."""
        return MAX_TOKENS

    def check(self) -> None:
        if self.start is None:
            raise UserError("there is nothing to tune: name a language model with --from")
        super().check()

    @cached_property
    def author(self) -> Predictor:
        """The language model to begin from."""
        assert self.start is not None
        return load_of_task(self.start, "language", "--from takes a language model")

    @cached_property
    def policy(self) -> nn.Module:
        """The model that is tuned."""
        return self.build(vocabulary=len(self.author.processor.tokenizer))

    def _model(self, sizes: Mapping[str, int]) -> nn.Module:
        return self.policy

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Drawing) -> list[WrittenText]:
        """What the tuned model draws for each prompt."""
        options.check()
        tokenizer = predictor.processor.tokenizer
        prompts = tokenizer.encode(list(texts))
        check_positions(predictor.model, texts, enumerate(map(len, prompts)), 1 + self.max_tokens)
        generator = torch.Generator().manual_seed(options.seed)
        model = predictor.model
        return [
            WrittenText(text) for text in write(model, model, tokenizer, prompts, 1, self.max_tokens, generator).texts
        ]

    def written(
        self,
        model: nn.Module,
        predictor: Predictor,
        beginnings: Sequence[str],
        options: Drawing,
        judge: Predictor | None,
    ) -> tuple[list[str], dict[str, float]]:
        """A text for each beginning, and their mean metrics; the "reward" if there is a reward model."""
        tokenizer = predictor.processor.tokenizer
        generator = torch.Generator().manual_seed(options.seed)
        prompts = tokenizer.encode(list(beginnings))
        found = write(model, self.author.model, tokenizer, prompts, 1, self.max_tokens, generator)
        metrics = {} if judge is None else {"reward": sum(rewards(judge, found.texts)) / len(prompts)}
        metrics |= {
            "kl": float(found.kl.mean()),
            "length": float(found.length.float().mean()),
            "distinct_2": distinct(found.texts),
        }
        if options.judge is not None:
            decisions = load_of_task(options.judge, "classify", "--judge takes a classifier").answer(
                found.texts, NoOptions()
            )
            metrics["positive"] = 100 * sum(one.label == "positive" for one in decisions) / len(decisions)
        return found.texts, metrics


def first_words(text: str, count: int) -> str:
    """The beginning of a text, as a prompt."""
    return " ".join(text.split()[:count])


def load_reward(folder: Path) -> Predictor:
    """The reward model of a folder."""
    return load_of_task(folder, "reward", "--reward takes a reward model")


def load_of_task(folder: Path, task: str, advice: str) -> Any:
    """What was trained in a folder. Raises UserError where it is of another task."""
    found = tasks.load(folder)
    if found.description["task"] != task:
        raise UserError(f"{folder} was trained for the task {found.description['task']}; {advice}")
    return found
