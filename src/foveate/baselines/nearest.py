"""The nearest of many texts: by vectors, or by the words that both have."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

AT_ONCE = 2000
"""Texts whose words are counted at a time: a row of the vocabulary's size each."""


PRODUCTS = 2**24
"""Cosines that are held at once."""


def nearest(
    queries: Float[Tensor, "Q C"], vectors: Float[Tensor, "M C"], count: int = 1
) -> tuple[Int[Tensor, "Q K"], Float[Tensor, "Q K"]]:
    """The rows of the `count` vectors with the greatest cosine to each query, best first, and the cosines."""
    directions = [part / part.norm(dim=1, keepdim=True).clamp_min(1e-12) for part in (queries, vectors)]
    some = max(1, PRODUCTS // max(1, len(vectors)))  # queries at once
    found = [(part @ directions[1].T).topk(min(count, len(vectors)), dim=1) for part in directions[0].split(some)]
    cosines, rows = (torch.cat(parts) for parts in zip(*found, strict=True))
    return rows, cosines


def nearest_by_words(
    queries: Sequence[Sequence[int]], known: Sequence[Sequence[int]], vocabulary: int
) -> Int[Tensor, "Q"]:
    """The place of the known text that is nearest to each query by TF-IDF; both are token ids.

    A text's vector is how often each token is in it, times the logarithm of how rare the token is among the known ones.
    """
    present = torch.tensor([token for text in known for token in set(text)], dtype=torch.long)
    rarity = torch.log((1 + len(known)) / (1 + torch.bincount(present, minlength=vocabulary)))
    asked = _counts(queries, vocabulary) * rarity
    best, places = torch.full((len(queries),), -1.0), torch.zeros(len(queries), dtype=torch.long)
    for start in range(0, len(known), AT_ONCE):
        rows, cosines = nearest(asked, _counts(known[start : start + AT_ONCE], vocabulary) * rarity)
        better = cosines[:, 0] > best
        best, places = torch.where(better, cosines[:, 0], best), torch.where(better, rows[:, 0] + start, places)
    return places


def _counts(texts: Sequence[Sequence[int]], vocabulary: int) -> Float[Tensor, "M N"]:
    rows = torch.repeat_interleave(torch.arange(len(texts)), torch.tensor([len(text) for text in texts]))
    tokens = torch.tensor([token for text in texts for token in text], dtype=torch.long)
    counts = torch.zeros(len(texts), vocabulary)
    counts.index_put_((rows, tokens), torch.ones(len(rows)), accumulate=True)
    return counts
