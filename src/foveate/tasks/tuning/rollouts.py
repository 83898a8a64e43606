"""Texts that a language model writes for prompts, what they are worth, and batches to learn from them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import length_hint
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.accelerator import device_of
from foveate.contracts import IGNORE, Batch, Tokenizer
from foveate.data.ragged import padded
from foveate.data.text.conversations import with_answer_end
from foveate.data.text.documents import Conversation
from foveate.decoding.sampling import sample
from foveate.errors import UserError
from foveate.training import Batches
from foveate.training.objectives.preferences import leave_one_out

ADVICE = "the last checkpoint has the weights before: try a lower learning_rate, or another kl_weight"

Judged = str | Conversation
"""What a reward model reads: a text, or messages with the answer to them."""

RewardOf = Callable[[Sequence[Judged]], Sequence[float]]
"""What texts are worth."""


class WritingPrompt(NamedTuple):
    """What a text is written after."""

    tokens: Sequence[int]
    """Those that the model reads, from the start token on."""
    question: Conversation | None = None
    """The messages that are answered, in a chat."""


@dataclass
class Rollouts:
    """Texts written for prompts, several for each, in the order of the prompts."""

    inputs: dict[str, Tensor]
    """`tokens` (R, T), each row beginning with the start token, and `lengths` (R,)."""
    labels: Tensor
    """(R, T), with IGNORE at the prompt."""
    texts: list[str]
    """With their prompts; of chats the answers alone."""
    judged: list[Judged]
    """What a reward model reads of each."""
    log_prob: Tensor
    """(R, T): the log-probability of each label to the writer; 0 at the prompt."""
    kl: Tensor
    """(R,): the log-probability of each text to its writer less that to the base model, in nats."""
    length: Tensor
    """(R,): tokens written, the end included."""


def write(
    model: nn.Module,
    base: nn.Module,
    tokenizer: Tokenizer,
    prompts: Sequence[WritingPrompt],
    samples: int,
    most: int,
    generator: torch.Generator,
) -> Rollouts:
    """`samples` texts of at most `most` tokens for each prompt, drawn from the model; its mode stays as it was.

    The base model is moved to the device of the model.
    """
    training, device = model.training, device_of(model)
    special = with_answer_end(tokenizer) if prompts[0].question else tokenizer.special
    starts, lengths = padded([np.array(prompt.tokens) for prompt in prompts], special.pad)
    begun = {"tokens": starts.to(device), "lengths": lengths.to(device)}
    drawn = sample(model.eval(), begun, special, most, samples, generator=generator)  # type: ignore[arg-type]
    rows, written, owners = [], [], []
    for prompt, outputs in zip(prompts, drawn, strict=True):
        for one in outputs:
            rows.append(np.array([*prompt.tokens, *one.tokens, *[special.end] * one.ended]))
            written.append([*([] if prompt.question else prompt.tokens[1:]), *one.tokens])
            owners.append(prompt)
    tokens, row_lengths = padded([row[:-1] for row in rows], special.pad)
    labels, _ = padded([row[1:] for row in rows], IGNORE)
    for row, prompt in enumerate(owners):
        labels[row, : len(prompt.tokens) - 1] = IGNORE
    inputs = {"tokens": tokens, "lengths": row_lengths}
    own, other = (token_log_probs(each, inputs, labels, device) for each in (model, base))
    model.train(training)
    kl, length = (own - other).sum(1), (labels != IGNORE).sum(1)
    texts = tokenizer.decode(written)
    judged = [_judged(prompt.question, text) for prompt, text in zip(owners, texts, strict=True)]
    return Rollouts(inputs, labels, texts, judged, own, kl, length)


def _judged(question: Conversation | None, text: str) -> Judged:
    return text if question is None else replace(question, turns=(*question.turns, ("assistant", text)))


@torch.no_grad()
def token_log_probs(model: nn.Module, inputs: dict[str, Tensor], labels: Tensor, device: torch.device) -> Tensor:
    """The log-probability of each label (R, T), in nats; 0 where there is none. The model is moved to the device on
    which it computes; the result is on the CPU, as inputs and labels are."""
    logits = model.to(device)(**{name: value.to(device) for name, value in inputs.items()}).logits.float()
    return -F.cross_entropy(logits.mT, labels.to(device), ignore_index=IGNORE, reduction="none").cpu()


@dataclass
class RolloutBatches:
    """Batches of texts that the model itself writes, each when it is asked for: on-policy.

    What is drawn depends on the model's weights, the seed and the batch's number alone. With several `passes`, each
    batch is given this many times; a training that resumes between two of them writes new texts for the others.
    """

    model: nn.Module
    base: nn.Module
    tokenizer: Tokenizer
    reward: RewardOf
    prompts: list[WritingPrompt]
    batch: int
    """Prompts of a batch."""
    samples: int
    """Texts for each prompt."""
    most: int
    """Tokens of a text."""
    kl_weight: float
    seed: int
    passes: int = 1

    def __len__(self) -> int:
        return self.passes * self._written

    @property
    def _written(self) -> int:
        """Batches that are written in an epoch."""
        return max(1, len(self.prompts) // self.batch)

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, counted from 0, without the first `skip`."""
        order = np.random.default_rng((self.seed, number)).permutation(len(self.prompts))
        for place in range(skip // self.passes, self._written):
            chosen = order[place * self.batch : (place + 1) * self.batch]
            generator = torch.Generator(device_of(self.model)).manual_seed(hash((self.seed, number, place)) % 2**63)
            batch = self._batch(
                [self.prompts[row] for row in chosen], generator, f"step {place + 1} of pass {number + 1}"
            )
            for _ in range(max(skip - place * self.passes, 0), self.passes):
                yield batch

    def _batch(self, prompts: list[WritingPrompt], generator: torch.Generator, source: str) -> Batch:
        try:
            found = write(self.model, self.base, self.tokenizer, prompts, self.samples, self.most, generator)
        except UserError as error:
            raise UserError(f"{source} stopped: {error}; {ADVICE}") from None
        reward = torch.tensor(list(self.reward(found.judged)))
        advantage = leave_one_out((reward - self.kl_weight * found.kl).view(-1, self.samples)).flatten()
        for name, values in (("KL", found.kl), ("reward", reward), ("advantage", advantage)):
            if not bool(values.isfinite().all()):
                wrong = int((~values.isfinite()).nonzero()[0])
                raise UserError(
                    f"{source} stopped: the {name} of '{found.texts[wrong]}' is {float(values[wrong])}; {ADVICE}"
                )
        targets = {
            "labels": found.labels,
            "log_prob": found.log_prob,
            "advantage": advantage,
            "reward": reward,
            "kl": found.kl,
            "length": found.length.float(),
        }
        return Batch(found.inputs, targets, torch.ones(len(reward), dtype=torch.long), source)


@dataclass
class ReferenceBatches:
    """Batches with `labels`, and as a target the `reference`: the log-probability of each row to the base model."""

    batches: Batches
    base: nn.Module
    model: nn.Module
    """The model that is tuned, on whose device the base model computes too."""

    @property
    def report(self) -> str:
        """What was left out."""
        return str(getattr(self.batches, "report", ""))

    def __len__(self) -> int:
        return length_hint(self.batches)

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for batch in self.batches.epoch(number, skip):
            reference = token_log_probs(self.base, batch.inputs, batch.labels, device_of(self.model)).sum(1)
            yield replace(batch, targets={**batch.targets, "reference": reference})


def distinct(texts: Sequence[str], size: int = 2) -> float:
    """The share of different n-grams of words among all of them, from 0 to 100 (Li et al. 2016)."""
    found = [tuple(words[i : i + size]) for words in map(str.split, texts) for i in range(len(words) - size + 1)]
    return 100 * len(set(found)) / max(1, len(found))
