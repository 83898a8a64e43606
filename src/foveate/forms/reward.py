"""Rewards: a number for a text, learned from pairs of which people like the first text better."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.text.pair_buckets import TokenPair
from foveate.data.text.preferences import Preference
from foveate.errors import UserError
from foveate.forms.answers import Answer
from foveate.forms.compared_text import ComparedText, regrouped
from foveate.forms.form import Changes, MapRow, OutputForm
from foveate.forms.label import pooled_row
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.scored import ScoredForm
from foveate.forms.text import PreparedBuckets, nothing_fits


@dataclass
class JudgedText(ComparedText):
    """A text. An example has a better and a worse one."""

    vocabulary: int = 4000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read lower case only."""
    max_length: int = 1024
    """Pairs with more tokens than this in a text, or than the model has positions for, are left out (and counted)."""

    def value(self, example: Preference | str) -> Any:
        return example if isinstance(example, str) else (example.better, example.worse)

    def cost(self, prepared: np.ndarray | TokenPair) -> int:
        """The tokens of both texts as they are filled up."""
        return 2 * super().cost(prepared)

    def buckets(self, train: Dataset[Preference], processor: Processor) -> Buckets:
        """Of the pairs with at most `max_length` tokens in a text. Raises UserError where there is none."""
        before, behind = self.around
        sides = [self.words.encode([self.value(one)[side] for one in train]) for side in (0, 1)]
        prepared, places, equal = [], [], 0
        for example, *both in zip(train, *sides, strict=True):
            if both[0] == both[1]:
                equal += 1
            elif max(map(len, both)) <= self.max_length:
                pair = TokenPair(*(np.array([*before, *text, *behind], np.int32) for text in both))
                prepared.append(PreparedExample(pair, None))
                places.append(example.place)
        limit = f"{self.max_length:,} tokens in a text"
        if equal == len(train):
            raise UserError(
                f"{train.name}: the two texts of each pair are equal to the model: there is nothing to learn"
            )
        if not prepared:
            raise nothing_fits(train, len(train), limit)
        long = len(train) - len(prepared) - equal
        counts = {f"for more than {limit}": long, "whose two texts are equal to the model": equal}
        left_out = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
        report = f"{train.name}: of {len(train):,} {train.unit} left out: {left_out}" if left_out else ""
        return PreparedBuckets(train.name, prepared, places, processor, report)


@dataclass(kw_only=True)
class RewardAnswer(Answer):
    """What a text is worth."""

    reward: float = 0.0
    worse: float | None = field(default=None, repr=False)
    """Of an example of training, what its worse text is worth."""
    empty: bool = field(default=False, repr=False)
    """Whether there was no text."""

    @property
    def cells(self) -> list[str]:
        """The reward, or both of an example."""
        if self.empty:
            return []
        return [f"{self.reward:.3f}", *([] if self.worse is None else [f"{self.worse:.3f}"])]

    def json_values(self) -> dict[str, Any]:
        """The reward; None for an empty text."""
        return {"reward": None if self.empty else self.reward}


@dataclass
class Reward(ScoredForm, OutputForm):
    """A number for a text: outputs with logits (2B, 1), a better text's and behind it the worse one's."""

    def sizes(self) -> dict[str, int]:
        return {"classes": 1}

    @property
    def summary(self) -> str:
        return ""

    def prepare(self, example: Preference) -> list[None]:
        """No target: the better text comes first."""
        return [None]

    def tensors(
        self, prepared: Sequence[None], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        return {}, {}, torch.ones(len(prepared), dtype=torch.long)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[RewardAnswer]:
        rewards: list[float] = model(**inputs).logits.float().flatten().tolist()
        return [
            RewardAnswer(reward=own[0], worse=own[1] if len(own) > 1 else None) for own in regrouped(prepared, rewards)
        ]

    def nothing(self) -> RewardAnswer:
        return RewardAnswer(empty=True)

    def metrics(self, answers: Sequence[RewardAnswer], examples: Sequence[Preference]) -> dict[str, float]:
        """The share of pairs whose better text has the larger reward."""
        right = sum(one.worse is not None and one.reward > one.worse for one in answers)
        return {"accuracy": 100 * right / len(examples)}

    def baselines(
        self, reads: Any, examples: Sequence[Preference], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        longer = sum(len(one.better) > len(one.worse) for one in examples)
        return {"the longer text": {"accuracy": 100 * longer / len(examples)}}

    score_name = "reward"

    def scored_labels(self, output: Output, answer: RewardAnswer) -> Tensor:
        return torch.zeros(1, 1, dtype=torch.long)

    def log_probs(self, logits: Tensor) -> Tensor:
        """The reward itself."""
        return logits.reshape(-1, 1, 1)

    def rows(self, sight: Any, model: nn.Module, answer: RewardAnswer, before: int) -> list[MapRow]:
        return pooled_row(answer.title, sight, model, before)
