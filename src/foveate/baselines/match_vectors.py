"""Vectors of texts without a trained network, to measure a matcher against: TF-IDF, and latent semantic analysis.

Latent semantic analysis of pairs (Dumais et al. 1997, Automatic Cross-Language Retrieval Using Latent Semantic
Indexing): both texts of a pair are one document, of which words of either side are counted apart. The singular vectors
of the documents put words that occur in the same pairs near each other, also across languages.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import Tokenizer
from foveate.data.text.match_pairs import Judged

WIDTH = 200
"""Singular vectors that are kept; half of them where there are fewer."""

NOTHING = 1e-3
"""A singular value of this share of the largest one is none."""

ROUNDS = 2
"""Subspace iterations of the singular value decomposition."""

Measure = Callable[[Sequence[Judged]], list[float]]
"""How well the texts of each pair fit together."""

Tokens = list[list[int]]


def vector_measures(tokenizers: tuple[Tokenizer, Tokenizer], pairs: Sequence[tuple[str, str]]) -> dict[str, Measure]:
    """Cosines of both texts' vectors, counted in the training pairs; of TF-IDF only where both share a vocabulary.

    `tokenizers` are that of the first texts and that of the second ones.
    """
    sources, targets = _encode(tokenizers, pairs)
    found: dict[str, Measure] = {}
    if _pieces(tokenizers[0]) == _pieces(tokenizers[1]):
        rarity = token_rarity([*sources, *targets], len(tokenizers[0]))
        found["cosine of TF-IDF"] = lambda judged: count_cosines(*_encode_judged(tokenizers, judged), rarity)
    first, second = latent_vectors(sources, targets, (len(tokenizers[0]), len(tokenizers[1])))
    found["cosine of LSA vectors"] = lambda judged: latent_cosines(*_encode_judged(tokenizers, judged), first, second)
    return found


def _pieces(tokenizer: Tokenizer) -> list[str]:
    """The vocabulary, by which tokenizers of two files are known to be the same."""
    return tokenizer.pieces([*range(len(tokenizer))])


def _encode(tokenizers: tuple[Tokenizer, Tokenizer], pairs: Sequence[tuple[str, str]]) -> tuple[Tokens, Tokens]:
    source, target = tokenizers
    return source.encode([one for one, _ in pairs]), target.encode([other for _, other in pairs])


def _encode_judged(tokenizers: tuple[Tokenizer, Tokenizer], pairs: Sequence[Judged]) -> tuple[Tokens, Tokens]:
    return _encode(tokenizers, [(pair.source, pair.target) for pair in pairs])


def token_rarity(texts: Sequence[Sequence[int]], vocabulary: int) -> Float[Tensor, "N"]:
    """The logarithm of how rare each token is among the texts."""
    present = torch.tensor([token for text in texts for token in set(text)], dtype=torch.long)
    return torch.log((1 + len(texts)) / (1 + torch.bincount(present, minlength=vocabulary)))


def count_cosines(sources: Tokens, targets: Tokens, rarity: Float[Tensor, "N"]) -> list[float]:
    """The cosine of how often each token is in either text, times how rare it is."""
    weights = rarity.tolist()

    def vector(text: Sequence[int]) -> dict[int, float]:
        counts = {token: count * weights[token] for token, count in Counter(text).items()}
        length = sum(value**2 for value in counts.values()) ** 0.5 or 1.0
        return {token: value / length for token, value in counts.items()}

    found = []
    for source, target in zip(map(vector, sources), map(vector, targets), strict=True):
        found.append(sum(value * target[token] for token, value in source.items() if token in target))
    return found


def latent_vectors(
    sources: Tokens, targets: Tokens, sizes: tuple[int, int]
) -> tuple[Float[Tensor, "N K"], Float[Tensor, "M K"]]:
    """A vector for each token of the sources and of the targets; a text's is the sum of its tokens'."""
    documents = [
        [*source, *(sizes[0] + token for token in target)] for source, target in zip(sources, targets, strict=True)
    ]
    rarity = token_rarity(documents, sum(sizes))
    rows, tokens = _places(documents)
    values = rarity[tokens]
    lengths = torch.zeros(len(documents)).index_add_(0, rows, values.square()).sqrt().clamp_min(1e-12)
    shape = (len(documents), sum(sizes))
    with torch.sparse.check_sparse_tensor_invariants(), torch.random.fork_rng(devices=[]):
        counted = torch.sparse_coo_tensor(torch.stack([rows, tokens]), values / lengths[rows], shape).coalesce()
        torch.manual_seed(1)  # of the random projection
        _, strengths, directions = torch.svd_lowrank(counted, min(WIDTH, *shape), ROUNDS)
    found = int((strengths > NOTHING * strengths[0]).sum())
    # All directions of a small text would put every word by itself.
    kept = WIDTH if found == WIDTH else (found + 1) // 2
    vectors = directions[:, :kept] * rarity[:, None]
    return vectors[: sizes[0]], vectors[sizes[0] :]


def latent_cosines(
    sources: Tokens, targets: Tokens, first: Float[Tensor, "N K"], second: Float[Tensor, "M K"]
) -> list[float]:
    """The cosine of both texts' vectors."""
    return F.cosine_similarity(_sums(sources, first), _sums(targets, second)).tolist()


def _sums(texts: Tokens, vectors: Float[Tensor, "N K"]) -> Float[Tensor, "B K"]:
    rows, tokens = _places(texts)
    return vectors.new_zeros(len(texts), vectors.shape[1]).index_add_(0, rows, vectors[tokens])


def _places(texts: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "T"], Int[Tensor, "T"]]:
    """The text that each token is of, and the token."""
    rows = torch.repeat_interleave(torch.arange(len(texts)), torch.tensor([len(text) for text in texts]))
    return rows, torch.tensor([*chain.from_iterable(texts)], dtype=torch.long)
