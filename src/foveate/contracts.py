"""What the parts of foveate agree on, so that each works with all others and knows none of them.

The shape legend, used in every annotation of the library:

    B  batch            H  heads           C  model width
    T  queries, target  D  key width       N  vocabulary
    S  keys, source     V  value width
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.special_tokens import IGNORE as IGNORE
from foveate.special_tokens import SpecialTokens


@dataclass
class Choices:
    """The places that hard attention took, one at each step: what is needed to learn from their consequences."""

    log_prob: Float[Tensor, "B T"]
    """How probable each was, with gradients."""
    entropy: Float[Tensor, "B T"]
    """Of the probabilities that it was drawn by, in nats, with gradients."""
    baseline: Float[Tensor, "B T"]
    """The reward that the model expected before it chose, with gradients that reach this expectation alone."""
    affects_later_steps: bool
    """Whether a choice also changes the steps after its own, so that their labels belong to its reward."""
    samples: int = 1
    """Choices of each step. T counts those of all: first one of each step, then another one of each, ..."""


@dataclass
class Output:
    """The output of a model: no loss, no decision. `choices` are those of hard attention, None where nothing chose."""

    logits: Float[Tensor, "... N"]
    choices: Choices | None = None
    auxiliary: tuple[Float[Tensor, "... N"], ...] = ()
    """Logits of classifiers that read earlier layers and are only trained with the model: none in evaluation."""
    divergence: Float[Tensor, "B"] | None = None
    """What is added to the loss of each example, in nats: of a variational model, a share of the Kullback-Leibler
    divergence of its random vector from the prior."""


@dataclass
class Batch:
    """Examples to train on: `model(**inputs)` gives an `Output`, which an objective compares with the `targets`.

    Rows, the first dimension of each target and of each input that has dimensions, are examples.
    """

    inputs: dict[str, Tensor]
    targets: dict[str, Tensor]
    """What the output should be: `labels` (B, T) for cross-entropy, with IGNORE where nothing counts."""
    weight: Int[Tensor, "B"]
    """What the loss is divided by, row by row: labels that count, boxes. A row may have none."""
    source: str
    """Which examples these are, for a message to the user: "lines 17, 243 and 58 of train.en"."""
    padding: bool = False
    """These are examples of another process, and count for nothing."""

    @property
    def total_weight(self) -> int:
        """What the loss of the batch is divided by."""
        return int(self.weight.sum())

    @property
    def labels(self) -> Int[Tensor, "B T"]:
        """The labels of a batch that has any."""
        return self.targets["labels"]

    @property
    def examples(self) -> int:
        """How many parts `select` can tell apart."""
        return len(self.weight)

    def select(self, chosen: slice) -> "Batch":
        """Some of the examples alone.

        An input without dimensions belongs to all. A kind of batch whose examples are not rows says itself what its
        `examples` are and what `select` takes. Raises ValueError where an input has another number of rows.
        """
        for name, value in (self.inputs | self.targets).items():
            if value.ndim and len(value) != len(self.weight):
                raise ValueError(
                    f"a batch with {len(self.weight)} examples and {len(value)} rows of '{name}' cannot be separated"
                )
        inputs = {name: value[chosen] if value.ndim else value for name, value in self.inputs.items()}
        targets = {name: value[chosen] for name, value in self.targets.items()}
        return replace(self, inputs=inputs, targets=targets, weight=self.weight[chosen])

    def to(self, device: torch.device | str) -> "Batch":
        inputs = {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()}
        targets = {name: value.to(device, non_blocking=True) for name, value in self.targets.items()}
        return replace(self, inputs=inputs, targets=targets)


def count_labels(labels: Int[Tensor, "B T"]) -> Int[Tensor, "B"]:
    """Counts the labels of each row that count: the weight of a batch whose targets are labels."""
    return (labels != IGNORE).sum(1)


def label_batch(inputs: dict[str, Tensor], labels: Int[Tensor, "B T"], source: str) -> Batch:
    """A batch whose targets are labels."""
    return Batch(inputs, {"labels": labels}, count_labels(labels), source)


@dataclass
class Hypothesis:
    """One decoded sequence: its token ids without start and end, its log-probability (end included when it ended),
    and the score that ranks it among its rivals."""

    tokens: list[int]
    log_prob: float
    score: float
    ended: bool = True


@runtime_checkable
class GridEncoder(Protocol):
    """A model that gives a feature map of images, for detection, captioning and hybrid Transformers."""

    grid_width: int
    """Channels of the feature map."""
    stride: int
    """Pixels of the image from one place of the feature map to the next."""

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map. Raises UserError for images that are too small for one."""


@runtime_checkable
class State(Protocol):
    """The memory of a decoder between two steps, one row for each hypothesis."""

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Keep the given rows, in the given order; a row may be named often or never."""


@runtime_checkable
class Generator(Protocol):
    """A model that writes one token after the other, whatever it reads."""

    def prefill(self, tokens: Int[Tensor, "R T"], **inputs: Tensor) -> tuple[Float[Tensor, "R N"], State]:
        """Read the inputs and the `tokens` that each output begins with; the logits of the next ones and the state."""

    def step(self, tokens: Int[Tensor, "R"], state: State) -> Float[Tensor, "R N"]:
        """Append one token to each row; the logits of the next one. Changes the state in place."""


@runtime_checkable
class World(Protocol):
    """Something to act in: a map, a game, a simulated robot."""

    def observe(self) -> dict[str, np.ndarray]:
        """Returns what can be seen now, by name: the inputs of an `Actor` for its next step, without the batch
        dimension."""

    def act(self, action: Any) -> bool:
        """Do one action, by its number or, of a robot, by the numbers that it consists of; whether this ends the
        episode. An action that is impossible changes nothing."""

    def copy(self) -> "World":
        """Another world in the same state, which later actions in this one do not change."""


@runtime_checkable
class Actor(Protocol):
    """A model that acts one action after the other, and observes before each.

    It has `start` where a `Generator` has `prefill`: before the first observation there are no logits to give.
    """

    def start(self, **inputs: Tensor) -> State:
        """Read the input (the instruction); the state before the first step, one row for each world."""

    def step(self, observation: dict[str, Tensor], state: State) -> Float[Tensor, "R A"]:
        """Observe every row's world; the logits of its next action, or its numbers. Changes the state in place."""


@runtime_checkable
class Tokenizer(Protocol):
    """Text to token ids and back. Ids never hold a start or end token unless a caller puts them there."""

    @property
    def special(self) -> SpecialTokens:
        """The token ids that are not text."""

    def __len__(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]: ...

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Returns the text of each token beside a picture: a word's first piece plain, a later one with a leading
        '·'."""

    def save(self, path: Path) -> None: ...


@runtime_checkable
class Picture(Protocol):
    """What `foveate.sight` draws: a Figure of matplotlib, whose name would cost a third of a second to import."""

    canvas: Any

    def savefig(self, fname: Any, **options: Any) -> None: ...
