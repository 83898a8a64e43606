"""Word embeddings, weight tying, and embeddings of spelling features."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.errors import UserError


class WordEmbedding(nn.Module):
    """The vector of a word plus the vectors of its spelling features, which unknown words share with known ones.

    Features are numbered by a hash, so two may share a vector. With thousands of vectors, collisions are harmless
    (Weinberger et al. 2009, Feature Hashing for Large Scale Multitask Learning).
    """

    def __init__(self, words: int, spellings: int, width: int) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.spelling = nn.Embedding(spellings, width)

    def forward(self, words: Int[Tensor, "B T"], spellings: Int[Tensor, "B T F"]) -> Float[Tensor, "B T C"]:
        """F is the number of spelling features of a word."""
        features = F.embedding_bag(spellings.flatten(0, 1), self.spelling.weight, mode="sum")
        return self.word(words) + features.unflatten(0, words.shape)


INITIAL = 0.1
"""`word_vectors` are initialized uniformly from -INITIAL to INITIAL. Small vectors keep rare words, which learn little,
from adding noise, and a tied output layer from being overconfident."""


def word_vectors(words: int, width: int) -> nn.Embedding:
    """An embedding of small random vectors."""
    table = nn.Embedding(words, width)
    nn.init.uniform_(table.weight, -INITIAL, INITIAL)
    return table


def word_embeddings(sources: int, targets: int, width: int, shared: bool) -> tuple[nn.Embedding, nn.Embedding]:
    """The embeddings of source and target; `shared`, they are the same module.

    Raises UserError if they are shared but the vocabularies differ in size.
    """
    if shared and sources != targets:
        raise UserError(
            f"tie='all' shares one embedding, but the vocabularies have {sources} and {targets} entries; "
            "train a shared one, or use tie='output'"
        )
    source = nn.Embedding(sources, width)
    return source, source if shared else nn.Embedding(targets, width)


def tie_output(output: nn.Linear, embedding: nn.Embedding) -> None:
    """Use the embedding as the weights of the output layer (Press and Wolf 2017, https://arxiv.org/abs/1608.05859).

    Raises UserError if their widths differ.
    """
    if output.in_features != embedding.embedding_dim:
        raise UserError(
            f"embeddings of width {embedding.embedding_dim} cannot be the output weights of states of width "
            f"{output.in_features}: make them equal, or do not tie them"
        )
    output.weight = embedding.weight
