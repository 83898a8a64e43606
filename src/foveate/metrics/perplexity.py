"""How well a model foretells text: perplexity per token; per word and in bits per byte, which compare across
vocabularies."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Batch
from foveate.data.text.documents import Passage
from foveate.data.text.scripts import count_words
from foveate.decoding import score


@dataclass(frozen=True)
class Perplexity:
    """The perplexity of some passages."""

    nats: float
    """Minus the log-probability of all of it, the end of each passage included."""
    tokens: int
    """Subwords, and an end for each passage."""
    words: int
    """Words that are separated by spaces, and an end for each passage."""
    bytes: int = 0
    """Those of the text in UTF-8, and an end for each passage."""

    @property
    def bits_per_byte(self) -> float:
        """Bits to write a byte of the text down, by the best code for these probabilities; 0 if bytes are unknown."""
        return self.nats / math.log(2) / self.bytes if self.bytes else 0.0

    @property
    def per_token(self) -> float:
        return _surprise(self.nats / self.tokens)

    @property
    def per_word(self) -> float:
        """The same log-probability, shared out among words: the vocabulary of the model plays no part in it.

        Infinite where words are so long, as in scripts without spaces, that no number would hold it.
        """
        return _surprise(self.nats / self.words)

    def figures(self) -> dict[str, float]:
        """All of it, as plain values."""
        return {**asdict(self), "per_token": self.per_token, "per_word": self.per_word}


def _surprise(nats: float) -> float:
    """This many equally likely choices would be as surprising."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Scored:
    """A passage and how surprising it was."""

    passage: Passage
    nats: float
    tokens: int


def scores(
    model: nn.Module,
    passages: Sequence[Passage],
    batches: Iterable[tuple[list[int], Batch]],
    condition: Callable[[Tensor], Tensor] | None = None,
) -> list[Scored]:
    """Computes how surprising each passage is to a model in evaluation mode; the batches say which are theirs.

    `condition` changes the conditions that the model gets.
    """
    device, found = next(model.parameters()).device, {}
    for places, batch in batches:
        batch = batch.to(device)
        if condition is not None:
            batch.inputs["condition"] = condition(batch.inputs["condition"])
        with torch.inference_mode():
            log_probs = score(model, batch).tolist()
        tokens = (batch.labels != IGNORE).sum(1).tolist()
        for place, log_prob, count in zip(places, log_probs, tokens, strict=True):
            found[place] = Scored(passages[place], -log_prob, count)
    return [found[place] for place in range(len(passages))]


def perplexity(scored: Sequence[Scored]) -> Perplexity:
    """The perplexity of passages together."""
    nats, tokens = sum(one.nats for one in scored), sum(one.tokens for one in scored)
    passages = [one.passage for one in scored]
    return Perplexity(nats, tokens, word_count(passages), byte_count(passages))


def word_count(passages: Iterable[Passage]) -> int:
    """Words, and an end for each passage."""
    return sum(count_words(passage.text) + 1 for passage in passages)


def byte_count(passages: Iterable[Passage]) -> int:
    """Bytes of UTF-8, and an end for each passage."""
    return sum(len(passage.text.encode()) + 1 for passage in passages)
