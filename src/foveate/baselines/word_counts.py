"""What counting words makes of labelled texts: naive Bayes, and logistic regression on TF-IDF.

Both read words and pairs of neighbouring words in lower case, and know nothing else of their order.

N  texts    M  texts that are asked about    F  words and pairs that were counted    L  labels
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from foveate.data.text.scripts import word_pattern

MOST_WEIGHTS = 2**24
"""Words and pairs, times labels, that are counted: the most frequent ones."""

STRENGTH = 10.0
"""What the loss of a text weighs beside half of the sum of the squared weights."""

STEPS = 100
"""Steps of L-BFGS, at most."""


@dataclass
class CountsWithLabels:
    """Texts as counts, and the number of the label of each."""

    counts: Float[Tensor, "N F"]
    """Sparse, where they are counts of words."""
    labels: Int[Tensor, "N"] | Float[Tensor, "N L"]
    """One of each text, or 1 for each label that it has, of which there may be several."""


def labels_by_counting(
    texts: Sequence[str], labels: Sequence[Sequence[str]], asked: Sequence[str], several: bool = False
) -> dict[str, list[list[str]]]:
    """The labels of each asked text by what counting finds in labelled ones, by the name of the way: one label, or
    `several`."""
    coded = CodedLabels(labels, several)
    read = [_words(text) for text in texts]
    common = Counter(chain.from_iterable(read)).most_common(MOST_WEIGHTS // len(coded.names))
    numbers = {word: number for number, (word, _) in enumerate(common)}
    known, counts = CountsWithLabels(_counts(read, numbers), coded.values), _counts(map(_words, asked), numbers)
    ways = {} if several else {"naive Bayes of words and pairs": naive_bayes(known, counts, len(coded.names))}
    ways["TF-IDF of words and pairs, logistic regression"] = regression(known, counts, len(coded.names))
    return {way: coded.decide(scores) for way, scores in ways.items()}


class CodedLabels:
    """Labels of examples as numbers: one of each, or 1 for each of `several`."""

    values: Int[Tensor, "N"] | Float[Tensor, "N L"]

    def __init__(self, labels: Sequence[Sequence[str]], several: bool) -> None:
        self.names, self._several = sorted(set(chain.from_iterable(labels))), several
        if several:
            self.values = torch.tensor([[float(name in own) for name in self.names] for own in labels])
        else:
            numbers = {name: number for number, name in enumerate(self.names)}
            self.values = torch.tensor([numbers[label] for (label,) in labels])

    def decide(self, scores: Float[Tensor, "M L"]) -> list[list[str]]:
        """The most probable label of each row, or those that are more probable than not, by their logits."""
        if not self._several:
            return [[self.names[number]] for number in scores.argmax(1).tolist()]
        return [[name for name, score in zip(self.names, row, strict=True) if score >= 0] for row in scores.tolist()]


def naive_bayes(known: CountsWithLabels, asked: Float[Tensor, "M F"], labels: int) -> Float[Tensor, "M L"]:
    """The log-probability of each label with each text, but for a constant: multinomial, with one added to each
    count."""
    of_label = known.counts.T @ F.one_hot(known.labels, labels).float()
    shares = torch.log((1 + of_label) / (1 + of_label).sum(0))
    frequent = torch.bincount(known.labels, minlength=labels) / len(known.labels)
    return asked @ shares + torch.log(frequent)


def regression(known: CountsWithLabels, asked: Float[Tensor, "M F"], labels: int) -> Float[Tensor, "M L"]:
    """The logits of a regression on TF-IDF, with squared weights in the loss, which L-BFGS finds: a softmax of all
    labels, or a logistic one for each where a text may have several."""
    present = torch.bincount(known.counts.coalesce().indices()[1], minlength=known.counts.shape[1])
    rarity = 1 + torch.log((1 + len(known.labels)) / (1 + present))
    learned = _tf_idf(known.counts, rarity)
    weights, bias = fit_regression(CountsWithLabels(learned, known.labels), labels)
    return _tf_idf(asked, rarity) @ weights + bias


def fit_regression(known: CountsWithLabels, labels: int) -> tuple[Float[Tensor, "F L"], Float[Tensor, " L"]]:
    """Weights and biases with the least `STRENGTH * cross-entropy + |weights|^2 / 2`."""
    weights = torch.zeros(known.counts.shape[1], labels, requires_grad=True)
    bias = torch.zeros(labels, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=STEPS, tolerance_grad=1e-4, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        logits = known.counts @ weights + bias
        found = _loss(logits, known.labels)
        found = STRENGTH * found + weights.square().sum() / 2
        found.backward()
        return found

    optimizer.step(loss)
    return weights.detach(), bias.detach()


def _loss(logits: Float[Tensor, "N L"], labels: Tensor) -> Tensor:
    if labels.is_floating_point():
        return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
    return F.cross_entropy(logits, labels, reduction="sum")


def _words(text: str) -> list[str]:
    """The words of a text and the pairs of neighbours among them."""
    words = word_pattern().findall(text.casefold())
    return [*words, *(f"{one} {other}" for one, other in pairwise(words))]


def _counts(texts: Iterable[Sequence[str]], numbers: dict[str, int]) -> Float[Tensor, "N F"]:
    """How often each known word is in each text, sparse."""
    rows, columns, values, count = list[int](), list[int](), list[int](), 0
    for count, words in enumerate(texts, 1):
        for word, times in Counter(word for word in words if word in numbers).items():
            rows.append(count - 1)
            columns.append(numbers[word])
            values.append(times)
    places = torch.tensor([rows, columns], dtype=torch.long)
    return _sparse(places, torch.tensor(values, dtype=torch.float32), (count, len(numbers)))


def _tf_idf(counts: Float[Tensor, "N F"], rarity: Float[Tensor, "F"]) -> Float[Tensor, "N F"]:
    """Texts as unit vectors: one plus the logarithm of each count, times how rare the word is."""
    rows, columns = counts.indices()
    values = (1 + counts.values().log()) * rarity[columns]
    lengths = values.new_zeros(len(counts)).index_add_(0, rows, values.square()).sqrt().clamp_min(1e-12)
    return _sparse(counts.indices(), values / lengths[rows], counts.shape)


def _sparse(places: Int[Tensor, "2 P"], values: Float[Tensor, "P"], shape: tuple[int, ...]) -> Float[Tensor, "N F"]:
    with torch.sparse.check_sparse_tensor_invariants():
        return torch.sparse_coo_tensor(places, values, shape).coalesce()
