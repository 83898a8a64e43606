"""Rewards: a number for a text, learned from pairs of which people like the first text better."""

import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.text.conversations import encode_conversations, ids_of, question_ids, turns_of
from foveate.data.text.documents import Conversation
from foveate.data.text.pair_buckets import TokenPair
from foveate.data.text.preferences import Preference
from foveate.errors import UserError
from foveate.files import parse_json
from foveate.forms.answers import Answer
from foveate.forms.compared_text import ComparedText, regrouped
from foveate.forms.form import Changes, MapRow, OutputForm
from foveate.forms.label import pooled_row
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.scored import ScoredForm
from foveate.forms.text import PreparedBuckets, nothing_fits

MESSAGES = re.compile(r'\s*\[\s*\{\s*"(role|from)"')
"""How a JSON list of messages begins."""


@dataclass
class JudgedText(ComparedText):
    """A text. An example has a better and a worse one."""

    vocabulary: int = 4000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read lower case only."""
    max_length: int = 1024
    """Pairs with more tokens than this in a text, or than the model has positions for, are left out (and counted)."""

    def texts(self, train: Dataset[Preference]) -> Iterator[str]:
        return (text for example in train for text in (example.better, example.worse))

    def open(self, given: str) -> str | Conversation:
        """A text; where the weights have a chat template, also a JSON list of messages."""
        if not (getattr(self.words, "chat", None) and MESSAGES.match(given)):
            return given
        return Conversation("the input", turns_of(parse_json(given, "the input"), "input", "the input"))

    def value(self, example: Preference | str | Conversation) -> Any:
        return example.texts if isinstance(example, Preference) else example

    def place(self, example: Preference) -> str:
        """The better text, or its conversation as `open` reads one."""
        if not example.conversations:
            return example.better
        messages = [{"role": role, "content": content} for role, content in example.conversations[0].turns]
        return json.dumps(messages, ensure_ascii=False)

    def group(self, example: Preference) -> Hashable:
        """Conversations with the same messages to answer are copies."""
        return super().group(example) if example.question is None else example.question.turns

    def size(self, value: Any) -> int:
        """A conversation is not cut."""
        return 1 if isinstance(value, Conversation) else super().size(value)

    def prepare(self, value: Any) -> np.ndarray | TokenPair:
        """The tokens of a text or a conversation, or of the two of an example. A model that learned from texts reads
        the last message of a conversation alone."""
        if isinstance(value, tuple):
            return TokenPair(*map(self.prepare, value))  # type: ignore[arg-type]
        if not isinstance(value, Conversation):
            return super().prepare(value)
        if not getattr(self.words, "chat", None):
            return super().prepare(value.turns[-1][1])
        return question_ids(value, self.words)

    def cost(self, prepared: np.ndarray | TokenPair) -> int:
        """The tokens of both texts as they are filled up."""
        return 2 * super().cost(prepared)

    def buckets(self, train: Dataset[Preference], processor: Processor) -> Buckets:
        """Of the pairs with at most `max_length` tokens in a text. Raises UserError where there is none."""
        around = 0 if train[0].conversations else sum(map(len, self.around))
        prepared, places, equal = [], [], 0
        for example, *both in zip(train, self._rows(train, 0), self._rows(train, 1), strict=True):
            if np.array_equal(both[0], both[1]):
                equal += 1
            elif max(map(len, both)) - around <= self.max_length:
                prepared.append(PreparedExample(TokenPair(*both), None))
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

    def _rows(self, train: Dataset[Preference], side: int) -> list[np.ndarray]:
        """One text of each pair, as `prepare` gives it."""
        values = [example.texts[side] for example in train]
        if train[0].conversations:
            return [ids_of(row) for row in encode_conversations(values, self.words)]
        before, behind = self.around
        return [np.array([*before, *text, *behind], np.int32) for text in self.words.encode(values)]


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
