"""Prompts that a tuned language model writes after.

B batch    T tokens
"""

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.text.conversations import question_ids
from foveate.data.text.documents import Conversation
from foveate.data.text.preferences import Preference
from foveate.decoding import Decoding
from foveate.errors import at_least
from foveate.forms.form import Changes, Learned
from foveate.forms.language import Beginning, Continuation
from foveate.forms.read_text import ReadText
from foveate.forms.written import ChatOptions, require_tokenizer
from foveate.training.settings import check_seed


@dataclass
class MeasureDrawn:
    """How `foveate eval` measures what a tuned model writes."""

    seed: int = 1
    """Seed of random draws."""
    judge: Path | None = None
    """A classifier, whose share of texts labelled "positive" is measured too."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_seed(self.seed)


@dataclass
class MeasureSamplesByReward(MeasureDrawn):
    """The same, of a model that was tuned without a reward model."""

    reward: Path | None = None
    """A reward model, whose mean reward is measured too."""


@dataclass
class ReadTunedPrompt(ReadText):
    """The beginning of a text: `tokens` (B, T), beginning with the start token, and `lengths` (B,). The vocabulary is
    that of the language model that is tuned."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    start_sign: ClassVar[str] = "<start>"
    reads_nothing: ClassVar[bool] = True
    goes_on: ClassVar[bool] = True

    max_length: Learned[int] = 0
    tokenizer: Learned[Any] = None
    prompt_words: int = 2
    """A prompt is this many words, the first of a text; of a conversation, all up to the last message of the user; a
    text that a file names as a prompt is read whole."""

    def check(self) -> None:
        at_least(1, "prompt_words", self.prompt_words)

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def check_training(self, model: nn.Module, batch: int) -> None:
        """Prompts are short."""

    def extend(self, trained: Any, train: Dataset[Any]) -> "ReadTunedPrompt":
        """With the vocabulary of the language model."""
        found = copy(self)
        found.tokenizer = trained.tokenizer
        return found

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        return (self.words.special.start,), ()

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.words)}

    @property
    def summary(self) -> str:
        return f"{len(self.words):,} tokens"

    def value(self, example: Any) -> str | Conversation:
        found: Conversation | None = example.question
        if getattr(example, "is_prompt", False):
            return str(example.text)
        return found or first_words(example.text, self.prompt_words)

    def group(self, example: Any) -> Hashable:
        """Conversations with the same messages to answer are copies."""
        if example.question is not None:
            return example.question.turns
        texts = (example.better, example.worse) if isinstance(example, Preference) else (example.text,)
        return tuple(text.casefold() for text in texts)

    def size(self, value: str | Conversation) -> int:
        """A conversation is not cut."""
        return 1 if isinstance(value, Conversation) else super().size(value)

    def warnings(self, name: str, examples: Sequence[Any]) -> list[str]:
        return []

    def open(self, given: str) -> str:
        """An empty prompt is gone on with from the start."""
        return given

    def prepare(self, value: str | Conversation) -> Beginning:
        if isinstance(value, Conversation):
            return Beginning(question_ids(value, self.words))
        return Beginning(super().prepare(value), 0, value)

    def cost(self, prepared: Beginning) -> int:
        return len(prepared.tokens)

    def positions(self, prepared: Beginning) -> int:
        return len(prepared.tokens)

    def longer_than_training(self, prepared: Beginning) -> bool:
        return False

    def tensors(
        self, prepared: Sequence[Beginning], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        tokens, lengths = padded([one.tokens for one in prepared], self.words.special.pad)
        return {"tokens": tokens, "lengths": lengths}, Changes()

    def names(self, prepared: Beginning) -> list[str]:
        return super().names(prepared.tokens)


@dataclass
class SampledText(Continuation):
    """What is drawn after a prompt."""

    options: ClassVar[type[Any]] = ChatOptions
    eval_options: ClassVar[type[Any]] = MeasureDrawn
    metric: ClassVar[str] = "objective"
    higher_is_better: ClassVar[bool] = True

    decoding: Learned[Decoding] = field(
        default_factory=lambda: Decoding(method="sample", length_factor=0.0, length_extra=0)
    )
    max_tokens: int = 24
    """Tokens of a text, at most."""

    def check(self) -> None:
        at_least(1, "max_tokens", self.max_tokens)

    def run_options(self) -> ChatOptions:
        return ChatOptions(Decoding(method="sample", length_factor=0.0, length_extra=self.max_tokens))

    def measure_options(self) -> Any:
        return self.eval_options()

    def extend(self, trained: Any, train: Dataset[Any]) -> "SampledText":
        """With the vocabulary of the language model."""
        found = copy(self)
        found.tokenizer = trained.tokenizer
        return found


@dataclass
class PairTunedText(SampledText):
    """What is drawn by a model that was tuned by pairs of texts."""

    eval_options: ClassVar[type[Any]] = MeasureSamplesByReward
    metric: ClassVar[str] = "accuracy"


def first_words(text: str, count: int) -> str:
    """The beginning of a text, as a prompt."""
    return " ".join(text.split()[:count])
