"""How well vectors of texts find the text that belongs to each."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from foveate.errors import UserError

AMONG = 100
"""Captions from which an image's own is chosen."""

TOGETHER = 1000
"""Sources that are compared with all targets together."""


def target_ranks(
    queries: Float[Tensor, "M C"], targets: Float[Tensor, "M C"], sources: Sequence[str], texts: Sequence[str]
) -> list[int]:
    """Counts the targets that are at least as near to each source, by their cosine, as its own.

    Targets with the same text, or of the same source, are not counted. Raises UserError for a single pair.
    """
    if len(texts) < 2:
        raise UserError("one target alone cannot be chosen from: measure on two pairs or more")
    queries, targets = F.normalize(queries, dim=-1), F.normalize(targets, dim=-1)
    names, origins = np.unique(texts, return_inverse=True)[1], np.unique(sources, return_inverse=True)[1]
    ranks: list[int] = []
    for begin in range(0, len(texts), TOGETHER):
        own = slice(begin, begin + TOGETHER)
        cosines = (queries[own] @ targets.mT).numpy()
        others = (names[own, None] != names) & (origins[own, None] != origins)
        right = cosines[np.arange(len(cosines)), np.arange(begin, begin + len(cosines))]
        ranks += ((cosines >= right[:, None]) & others).sum(1).tolist()
    return ranks


def ranks_in_hundreds(images: Float[Tensor, "M C"], captions: Float[Tensor, "M C"], texts: Sequence[str]) -> list[int]:
    """Counts the other captions of the same hundred that fit each image at least as well as its own, and are not equal
    to it.

    Hundreds are taken in order; examples that fill no hundred, unless they are the only ones, are compared with the
    first of them. Raises UserError for a single caption.
    """
    if len(texts) < 2:
        raise UserError("one caption alone cannot be chosen from: measure on two images or more")
    ranks = []
    names = np.array(texts)
    for begin in range(0, len(texts), AMONG):
        own = np.arange(begin, min(begin + AMONG, len(texts)))
        among = np.append(own, np.arange(min(len(texts), AMONG) - len(own))) if len(own) < AMONG else own
        cosines = (images[own] @ captions[among].mT).numpy()
        other = names[own][:, None] != names[among][None]
        right = cosines[np.arange(len(own)), np.arange(len(own))]
        ranks += ((cosines >= right[:, None]) & other).sum(1).tolist()
    return ranks


def as_shares(ranks: Sequence[int]) -> dict[str, float]:
    """The shares of the ranks that are the first, and one of the first five."""
    return {f"recall_{most}": 100 * float(np.mean([rank < most for rank in ranks])) for most in (1, 5)}


def as_recall(ranks: Sequence[int]) -> dict[str, float]:
    """The shares of the ranks that are the first, and one of the first five; and the mean of 1 / place (MRR)."""
    return {**as_shares(ranks), "mean_reciprocal_rank": 100 * float(np.mean([1 / (rank + 1) for rank in ranks]))}


def letter_vectors(sources: Sequence[str], targets: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Vectors (M, C) of sources and targets: how often each triple of letters occurs, and less for frequent triples
    (TF-IDF, counted in these texts)."""
    triples = [[*_triples(text)] for text in (*sources, *targets)]
    numbers = {triple: place for place, triple in enumerate(dict.fromkeys(one for text in triples for one in text))}
    counts = torch.zeros(len(triples), max(1, len(numbers)))
    for row, text in enumerate(triples):
        for triple in text:
            counts[row, numbers[triple]] += 1
    vectors = counts.log1p() * (len(triples) / (counts > 0).sum(0).clamp(min=1)).log()
    return vectors[: len(sources)], vectors[len(sources) :]


def _triples(text: str) -> list[str]:
    padded = f" {text.casefold()} "
    return [padded[place : place + 3] for place in range(len(padded) - 2)]


def cosine_of_pairs(one: Float[Tensor, "M C"], other: Float[Tensor, "M C"]) -> Float[Tensor, " M"]:
    """The cosine of each vector with the one at its place."""
    return (F.normalize(one, dim=-1) * F.normalize(other, dim=-1)).sum(-1)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's correlation, from -1 to 1: that of the ranks, equal values with their mean rank; 0 where all are
    equal."""
    ranks = [_ranks(np.asarray(values, np.float64)) for values in (one, other)]
    centred = [values - values.mean() for values in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1]) / size if size else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[places]
