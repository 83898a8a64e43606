"""Attention by a rule of a model's own that is no softmax: shares that it makes of a product of queries and keys."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate import look
from foveate.errors import UserError

B, T, C = 2, 7, 12

X = torch.randn(B, T, C, generator=torch.Generator().manual_seed(1))

CAUSAL = torch.ones(T, T).tril()


class Weighing(nn.Module):
    """Makes weights of scores by a rule, and keeps them."""

    def __init__(self, rule: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.rule = rule
        self.q, self.k, self.v = (nn.Linear(C, C) for _ in range(3))

    def weights(self, x: Tensor) -> Tensor:
        weights = self.rule(self.q(x) @ self.k(x).mT)
        self.made = weights.detach().clone()
        return weights

    def forward(self, x: Tensor) -> Tensor:
        return self.weights(x) @ self.v(x)


class Spread(Weighing):
    """Multiplies number by number, and sums up."""

    def forward(self, x: Tensor) -> Tensor:
        return (self.weights(x).unsqueeze(-1) * self.v(x).unsqueeze(1)).sum(2)


class Attention(Weighing):
    """Says by its name what it does."""


def sparsemax(scores: Tensor) -> Tensor:
    ordered = scores.sort(-1, descending=True).values
    ranks = torch.arange(1, scores.shape[-1] + 1)
    chosen = (1 + ranks * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    threshold = (ordered.cumsum(-1).gather(-1, chosen - 1) - 1) / chosen
    return torch.clamp(scores - threshold, min=0)


def entmax(scores: Tensor) -> Tensor:
    """Alpha of 1.5, by bisection."""
    low = (scores := scores / 2).amax(-1, keepdim=True) - 1
    high = low + 1
    for _ in range(40):
        middle = (low + high) / 2
        over = (scores - middle).clamp(min=0).square().sum(-1, keepdim=True) > 1
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    shares: Tensor = (scores - low).clamp(min=0) ** 2
    return shares / shares.sum(-1, keepdim=True)


def divided_in_place(scores: Tensor) -> Tensor:
    found = torch.exp(scores - scores.amax(-1, keepdim=True)) * CAUSAL
    found /= found.sum(-1, keepdim=True)
    return found


def with_epsilon(scores: Tensor) -> Tensor:
    found = scores.exp() * CAUSAL
    return found / (found.sum(-1, keepdim=True) + 1e-6)


SHARES = {
    "sparsemax": sparsemax,
    "entmax": entmax,
    "masked exp, divided in place": divided_in_place,
    "masked exp, epsilon": with_epsilon,
    "L1": lambda scores: F.normalize(F.relu(scores), p=1, dim=-1),
    "squares": lambda scores: scores.square() / scores.square().sum(-1, keepdim=True),
    "sigmoid, divided": lambda scores: scores.sigmoid() / scores.sigmoid().sum(-1, keepdim=True),
}


@pytest.mark.parametrize("kind", [Weighing, Spread, Attention])
@pytest.mark.parametrize("rule", SHARES.values(), ids=SHARES)
def test_shares_that_were_made_of_scores_are_seen(rule: Callable[[Tensor], Tensor], kind: type[Weighing]) -> None:
    model = kind(rule)
    expected = model(X)
    with look(model) as sight:
        assert torch.equal(model(X), expected)
    assert torch.equal(sight[""].weights()[:, 0], model.made)


@pytest.mark.parametrize("rule", [lambda s: F.relu(s) ** 2 / T, F.softplus, lambda s: torch.relu(s).pow(2)])
def test_what_a_rectifier_leaves_is_seen_where_the_module_is_called_attention(rule: Callable[[Tensor], Tensor]) -> None:
    model = Attention(rule)
    with look(model) as sight:
        model(X)
    assert torch.equal(sight[""].weights()[:, 0], model.made)


class Talking(nn.Module):
    """Mixes the weights of heads by an einsum with parameters, before or behind the softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.qkv = 3, nn.Linear(C, 3 * C)
        self.mix = nn.Parameter(torch.randn(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (3, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = torch.einsum("bhij,hg->bgij", q @ k.mT, self.mix)
        weights = torch.einsum("bhij,hg->bgij", scores.softmax(-1), self.mix)
        self.made = weights.detach().clone()
        return (weights @ v).transpose(1, 2).flatten(2)


def test_weights_mixed_by_learned_numbers_are_seen_where_the_module_is_called_attention() -> None:
    with look(attention := type("TalkingAttention", (Talking,), {})()) as sight:
        attention(X)
    assert torch.equal(sight[""].weights(), attention.made)
    with pytest.raises(UserError, match="multiplies something by a changed softmax"), look(other := Talking()):
        other(X)


class DividedLater(Weighing):
    """Divides by the sum when the values are weighed already."""

    def forward(self, x: Tensor) -> Tensor:
        found = torch.exp(self.q(x) @ self.k(x).mT / C)
        return found @ self.v(x) / found.sum(-1, keepdim=True)


def test_exponentials_that_are_divided_later_are_not_passed_over_in_silence() -> None:
    with pytest.raises(UserError, match="may be attention and cannot be seen"), look(model := DividedLater(entmax)):
        model(X)


class Gram(Weighing):
    """Products that are no shares: of scores as they are, of rectified ones, and of a matrix of means."""

    def forward(self, x: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).mT
        mean = torch.full((T, T), 1 / T)
        return scores @ x + F.relu(scores) @ x + mean @ x


class AttentionWithIndexer(nn.Module):
    """Sums rectified scores over heads, as an indexer that chooses keys, within attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.share = Attention(entmax), nn.Linear(C, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x) + torch.einsum("bhts,bth->bts", self.scores(x), self.share(x)) @ x * 0

    @staticmethod
    def scores(x: Tensor) -> Tensor:
        return F.relu(x.unflatten(-1, (3, -1)).transpose(1, 2) @ x.unflatten(-1, (3, -1)).transpose(1, 2).mT)


@pytest.mark.parametrize("kind", [lambda: Gram(entmax), AttentionWithIndexer])
def test_other_products_are_no_attention(kind: Callable[[], nn.Module]) -> None:
    other = kind()
    with look(model := nn.Sequential(other, Attention(entmax))) as sight:
        model(X)
    assert sight.sites == (["1"] if isinstance(other, Gram) else ["0.attention", "1"])
