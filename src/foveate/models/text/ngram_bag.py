"""A text as a bag of its words and of runs of neighbouring words (fastText: Joulin et al. 2017, Bag of Tricks for
Efficient Text Classification, https://arxiv.org/abs/1607.01759).

Each word has a vector, and so has each run of up to `order` words that ends at it; runs share a table of vectors by a
hash. Their sum stands at the word, so that attention to the words has the runs too. Nothing else of their order is
read. With `--tokens subwords`, runs of subwords are parts of words and pairs of short ones.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import at_least, check_literals
from foveate.nn import Dropout, pooling, word_vectors

FACTOR = 1_000_003
"""What the hash of a run is multiplied by before the next word is added: a prime."""


@dataclass
class NgramBagConfig:
    """The sizes of a bag of words and runs of words."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData
    """Number of labels of a text."""
    width: int = 32
    """Width C of the vectors."""
    order: int = 2
    """Words of the longest runs that have a vector: 1 for words alone, 2 for pairs too."""
    buckets: int = 131_072
    """Vectors of the runs of each length from 2 on. Several runs may share one."""
    pooling: Literal["mean", "attention"] = "mean"
    """What stands for a text: the mean of all places, or attention to them by a learned query."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: the score of the places for the query."""
    dropout: float = 0.3
    """Share of what is classified that is dropped in training."""


class NgramBag(nn.Module):
    """Embeds words and runs of words, and classifies their mean."""

    def __init__(self, config: NgramBagConfig) -> None:
        super().__init__()
        check_literals(config)
        for name in ("order", "buckets"):
            at_least(1, name, getattr(config, name))
        self.config = config
        self.embedding = word_vectors(config.vocabulary, config.width)
        runs = [nn.Embedding(config.buckets, config.width) for _ in range(config.order - 1)]
        for table in runs:
            nn.init.zeros_(table.weight)  # a run that was never learned from says nothing
        self.runs = nn.ModuleList(runs)
        self.pooling = pooling(config.pooling, config.width, config.score)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.classes)

    def forward(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the text's label, (B, 1, N)."""
        states = self.pooling(self.states(tokens), lengths)[:, None]
        return Output(self.output(self.dropout(states)))

    def states(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """The sum of the vectors of each word and of the runs that end at it."""
        states, hashed = self.embedding(tokens), tokens
        for length, table in enumerate(self.runs, start=2):
            before = nn.functional.pad(tokens, (length - 1, 0))[:, : tokens.shape[1]]
            hashed = torch.remainder(hashed * FACTOR + before, self.config.buckets)
            whole = torch.arange(tokens.shape[1], device=tokens.device) >= length - 1  # it begins within the text
            states = states + table(hashed) * whole[:, None]
        return states


MODEL, CONFIG = NgramBag, NgramBagConfig

PRESETS: dict[str, dict[str, Any]] = {
    "ngram-bag": {},
    "ngram-bag-attentive": {"pooling": "attention"},
}
