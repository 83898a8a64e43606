"""Words as vectors, with the help of their spelling."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


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
