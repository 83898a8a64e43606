"""What the ways to tune a language model by preferences have in common: where they begin, and how what the tuned model
writes is measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from foveate import tasks
from foveate.accelerator import device_of
from foveate.contracts import Output, Tokenizer
from foveate.data.text.documents import Conversation
from foveate.errors import UserError
from foveate.forms.inputs import make_title
from foveate.forms.tuned import ReadTunedPrompt
from foveate.nn import longest_sequence, low_rank_updates, without_low_rank
from foveate.tasks.chatting import Chatting
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.tuning.rollouts import Judged, WritingPrompt, distinct, write

SAME = 1e-6
"""Rewards that differ by less are equal."""


LANGUAGE_MODELS = ("language", "dpo", "rlhf")
"""The tasks whose models write prose."""


@dataclass(frozen=True)
class LanguageRun(AllWeights):
    """All of a language model, tuned or not, without dropout: what is drawn is what is learned from."""

    help: ClassVar[str] = "Folder of the language model to begin from: `foveate train language`, dpo or rlhf."
    missing: ClassVar[str] = "there is nothing to tune: name a language model with --from"

    of: tuple[str, ...] = LANGUAGE_MODELS
    folders: bool = True
    new_head: bool = False

    def complete(self, recipe: Any) -> None:
        super().complete(recipe)
        dropouts = [name for name in recipe.preset.values | _fields(recipe) if name.endswith("dropout")]
        recipe.architecture = {**(recipe.architecture or {}), **dict.fromkeys(dropouts, 0.0)}


def _fields(recipe: Any) -> dict[str, Any]:
    """The fields of the config of a recipe's preset."""
    from foveate import models

    return dict(models.config_class(recipe.preset.family).__dataclass_fields__)


class WithoutUpdates(nn.Module):
    """A model as it was before its low-rank updates; it has no weights of its own."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._of = (model,)  # not a part of this module, which would move and train it

    def forward(self, **inputs: Tensor) -> Output:
        (model,) = self._of
        training = model.training
        with without_low_rank(model):
            output: Output = model.eval()(**inputs)
        model.train(training)
        return output


class TunedModel(Chatting, Skill):
    """A language model that was tuned."""

    @property
    def tokenizer(self) -> Tokenizer:
        """That of the language model."""
        reads: ReadTunedPrompt = self.processor.reads
        return reads.words

    @cached_property
    def author(self) -> Any:
        """The language model to begin from."""
        assert self.recipe.start is not None
        return load_of_task(self.recipe.start, LANGUAGE_MODELS, "--from takes a language model")

    @property
    def base(self) -> nn.Module:
        """The model to begin from; where low-rank updates are learned, the model without them, in the same memory."""
        return WithoutUpdates(self.model) if low_rank_updates(self.model) else self.author.model

    @property
    def before(self) -> str:
        """What the model from which the tuning began is called in tables."""
        return f"before, {self.recipe.start}"

    def prompt(self, value: Any) -> WritingPrompt:
        """The beginning of a text, or messages to answer, as tokens. Raises UserError where no room is left."""
        tokens = self.processor.reads.prepare(value).tokens.tolist()
        most, room = longest_sequence(self.model), self.processor.writes.max_tokens
        if len(tokens) + room > most:
            text = value.turns[-1][1] if isinstance(value, Conversation) else value
            raise UserError(
                f"the prompt {make_title(text)!r} has {len(tokens):,} tokens, and {room:,} may be written, but the "
                f"model reads at most {int(most):,}: shorten it, or lower --max-tokens"
            )
        return WritingPrompt(tokens, value if isinstance(value, Conversation) else None)

    def written(
        self, model: nn.Module, beginnings: Sequence[Any], options: Any, reward: Path | None
    ) -> tuple[list[str], dict[str, float]]:
        """A text for each beginning, or an answer to messages, and their mean metrics; the "reward" if there is a
        reward model."""
        generator = torch.Generator(device_of(model)).manual_seed(options.seed)
        prompts, most = [*map(self.prompt, beginnings)], self.processor.writes.max_tokens
        found = write(model, self.base, self.tokenizer, prompts, 1, most, generator)
        metrics = {} if reward is None else {"reward": sum(rewards(load_reward(reward), found.judged)) / len(prompts)}
        metrics |= {
            "kl": float(found.kl.mean()),
            "length": float(found.length.float().mean()),
            "distinct_2": distinct(found.texts),
        }
        if options.judge is not None:
            judge = load_of_task(options.judge, ("classify",), "--judge takes a classifier")
            decisions = judge.answer(found.texts)
            metrics["positive"] = 100 * sum(one.label == "positive" for one in decisions) / len(decisions)
        return found.texts, metrics


def load_reward(folder: Path) -> Any:
    """The reward model of a folder."""
    return load_of_task(folder, ("reward",), "--reward takes a reward model")


def load_of_task(folder: Path, allowed: Sequence[str], advice: str) -> Any:
    """What was trained in a folder. Raises UserError where it is of another task than those that are allowed."""
    found = tasks.load(folder)
    if found.task.name not in allowed:
        raise UserError(f"{folder} was trained for the task {found.task.name}; {advice}")
    return found


def rewards(judge: Any, texts: Sequence[Judged]) -> list[float]:
    """What a reward model gives texts or conversations, in their order."""
    reads, writes = judge.processor.reads, judge.processor.writes
    prepared = [reads.prepare(text) for text in texts]  # also of an empty text, which a model may write
    return [float(one.reward) for one in judge.answer_prepared(prepared, writes.run_options())]


def check_rewards(judge: Any, texts: Sequence[Judged], folder: Path) -> None:
    """Raise UserError for a reward model from which nothing can be learned: it gives these texts the same reward."""
    found = rewards(judge, texts)
    kind = "sentences" if isinstance(texts[0], str) else "conversations"
    if len(set(texts)) > 1 and max(found) - min(found) < SAME:
        raise UserError(
            f"{folder} gives {len(texts)} {kind} the same reward, {found[0]:.3g}: there is nothing to learn from it"
        )
