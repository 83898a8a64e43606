"""Words as vectors: their tables, what these share, and the help of their spelling."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.errors import UserError


class WordEmbedding(nn.Module):
    """A word's own vector plus the vectors of the features of its spelling, which unknown words share with known
    ones.

    Features are numbered by a hash, so two may share a vector; with thousands of vectors that does little harm
    (Weinberger et al. 2009, Feature Hashing for Large Scale Multitask Learning).
    """

    def __init__(self, words: int, spellings: int, width: int) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.spelling = nn.Embedding(spellings, width)

    def forward(self, words: Int[Tensor, "B T"], spellings: Int[Tensor, "B T F"]) -> Float[Tensor, "B T C"]:
        """F is how many features tell a word's spelling."""
        features = F.embedding_bag(spellings.flatten(0, 1), self.spelling.weight, mode="sum")
        return self.word(words) + features.unflatten(0, words.shape)


INITIAL = 0.1
"""`word_vectors` begin evenly drawn from -INITIAL to INITIAL: a rare word, which learns little, shall also say little,
and as weights of an output layer larger ones would be far too sure."""


def word_vectors(words: int, width: int) -> nn.Embedding:
    """A table of small random vectors, one for each word of a vocabulary."""
    table = nn.Embedding(words, width)
    nn.init.uniform_(table.weight, -INITIAL, INITIAL)
    return table


def word_embeddings(sources: int, targets: int, width: int, shared: bool) -> tuple[nn.Embedding, nn.Embedding]:
    """The tables of a source's and of a target's vocabulary; `shared`, they are one.

    Raises UserError where two vocabularies of different size should share one.
    """
    if shared and sources != targets:
        raise UserError(
            f"tie='all' shares one embedding, but the vocabularies have {sources} and {targets} entries; "
            "train a shared one, or use tie='output'"
        )
    source = nn.Embedding(sources, width)
    return source, source if shared else nn.Embedding(targets, width)


def tie_output(output: nn.Linear, embedding: nn.Embedding) -> None:
    """Let words be scored by the vectors that they are read by (Press and Wolf 2017, https://arxiv.org/abs/1608.05859).

    Raises UserError where the states that are scored are not as wide as the embeddings.
    """
    if output.in_features != embedding.embedding_dim:
        raise UserError(
            f"embeddings of width {embedding.embedding_dim} cannot also be the output weights of states of width "
            f"{output.in_features}: make them equal, or do not tie them"
        )
    output.weight = embedding.weight
