"""Attention in code of a model's own: the weights that it multiplies with what it reads are its sites."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate import look
from foveate.errors import UserError

B, T, H, C = 2, 5, 3, 12

X = torch.randn(B, T, C, generator=torch.Generator().manual_seed(1))

CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()


class Heads(nn.Module):
    """Projects queries, keys and values, (B, H, T, D), and keeps the weights that it makes."""

    def __init__(self, dropout: float = 0.0, inplace: bool = False) -> None:
        super().__init__()
        self.n_head, self.qkv = H, nn.Linear(C, 3 * C)
        self.dropout = nn.Dropout(dropout, inplace)
        self.made: list[Tensor] = []

    def parts(self, x: Tensor) -> list[Tensor]:
        return [part.unflatten(-1, (H, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)]

    def kept(self, weights: Tensor) -> Tensor:
        self.made.append(weights.detach().clone())
        return weights


class NanoGPT(Heads):
    """The branch without flash attention."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        weights = self.kept(F.softmax(scores.masked_fill(~CAUSAL, float("-inf")), dim=-1))
        y = self.dropout(weights) @ v
        return y.transpose(1, 2).contiguous().view(B, T, C)


class Einsum(Heads):
    """Keeps the heads behind the tokens."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in self.parts(x))
        weights = torch.einsum("bihd, bjhd -> bihj", q, k).softmax(-1)
        self.kept(weights.transpose(1, 2))
        return torch.einsum("b i h j, b j h d -> b i h d", self.dropout(weights), v).flatten(2)


class Flattened(Heads):
    """Has examples and heads in one dimension."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.flatten(0, 1) for part in self.parts(x))
        weights = torch.bmm(q, k.mT).softmax(-1)
        self.kept(weights.unflatten(0, (B, H)))
        return torch.bmm(self.dropout(weights), v).unflatten(0, (B, H)).transpose(1, 2).flatten(2)


class Lucid(Heads):
    """As in many modules of lucidrains: one head of keys for all, and a softmax of a module."""

    def __init__(self, *dropout: float) -> None:
        super().__init__(*dropout)
        self.heads, self.attend = H, nn.Softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        weights = self.kept(self.attend(torch.einsum("b h i d, b j d -> b h i j", q, k[:, 0])))
        return torch.einsum("b h i j, b j d -> b h i d", self.dropout(weights), v[:, 0]).transpose(1, 2).flatten(2)


class ValuesFirst(Heads):
    """Multiplies the transposed weights from the right, as in convolutional models."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.mT for part in self.parts(x))
        weights = self.kept((q.mT @ k).softmax(-1))
        return (v @ self.dropout(weights).transpose(-2, -1)).flatten(1, 2).mT


class Sigmoid(Heads):
    """Sigmoid attention, whose weights sum to anything."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return (self.dropout(self.kept(torch.sigmoid(q @ k.mT))) @ v).transpose(1, 2).flatten(2)


class SigmoidAttention(Sigmoid):
    pass


class Bahdanau(nn.Module):
    """Pools tokens by an additive score."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.score = nn.Linear(C, 7), nn.Linear(7, 1, bias=False)
        self.made: list[Tensor] = []

    def weights(self, x: Tensor) -> Tensor:
        weights = F.softmax(self.score(torch.tanh(self.project(x))), dim=1)
        self.made.append(weights.detach()[:, None].mT)
        return weights

    def forward(self, x: Tensor) -> Tensor:
        return (self.weights(x) * x).sum(1, keepdim=True).expand_as(x)


class BahdanauByProduct(Bahdanau):
    def forward(self, x: Tensor) -> Tensor:
        return torch.bmm(self.weights(x).transpose(1, 2), x).expand_as(x)


class Separate(nn.Module):
    """A part gives weights, and the whole multiplies them: the tutorials of sequence to sequence."""

    class Attention(Bahdanau):
        def forward(self, x: Tensor) -> Tensor:
            return self.weights(x).squeeze(-1)

    def __init__(self) -> None:
        super().__init__()
        self.attention = self.Attention()

    def forward(self, x: Tensor) -> Tensor:
        return (self.attention(x).unsqueeze(1) @ x).expand_as(x)


class BySoftmaxModule(NanoGPT):
    """Has a softmax in a module of its own code, which is no place to name."""

    class Softmax(nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
            return exponentials / exponentials.sum(-1, keepdim=True)

    def __init__(self) -> None:
        super().__init__()
        self.softmax = self.Softmax()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        return (self.kept(self.softmax(q @ k.mT)) @ v).transpose(1, 2).flatten(2)


OWN = [NanoGPT, Einsum, Flattened, Lucid, ValuesFirst, SigmoidAttention, Bahdanau, BahdanauByProduct, BySoftmaxModule]


@pytest.mark.parametrize("kind", OWN)
def test_the_weights_that_were_made_are_seen(kind: type[nn.Module]) -> None:
    model = nn.Sequential(nn.Linear(C, C), kind())
    expected = model(X)
    with look(model) as sight:
        assert torch.equal(model(X), expected)
    assert sight.sites == ["1"]
    site, made = sight["1"], model[1].made[-1]
    assert site.shape == made.shape
    assert torch.equal(site.weights(), made)
    assert site.output_error() < 1e-6
    assert torch.equal(site.weights(heads=[-1], queries=[0], keys=slice(1, 3)), made[:, -1:, :1, 1:3])
    torch.testing.assert_close(site.received(), made.sum(-2))
    torch.testing.assert_close(site.entropy(), -torch.xlogy(made, made).sum(-1), atol=1e-5, rtol=0)
    assert torch.equal(site.top(1).weights[..., 0], made.amax(-1))


def test_the_part_that_made_the_weights_is_named_if_it_is_called_attention() -> None:
    with look(model := Separate()) as sight:
        model(X)
    assert sight.sites == ["attention"]
    assert torch.equal(sight["attention"].weights(), model.attention.made[0])


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("kind", [NanoGPT, Einsum, Flattened, Lucid, ValuesFirst])
def test_weights_are_those_before_dropout(kind: Callable[..., nn.Module], inplace: bool) -> None:
    model, outputs = kind(0.5, inplace).train(), []
    for looking in (False, True):
        torch.manual_seed(3)
        model.zero_grad()
        if looking:
            with look(model) as sight:
                outputs.append(model(X))
        else:
            outputs.append(model(X))
        if not inplace:  # torch forbids it: a softmax needs its result in the backward pass
            outputs[-1].square().sum().backward()
            outputs.append(model.qkv.weight.grad.clone())
    first, second = outputs[: len(outputs) // 2], outputs[len(outputs) // 2 :]
    assert all(map(torch.equal, first, second))
    assert torch.equal(sight[""].weights(), model.made[-1])
    with pytest.raises(UserError, match="dropout changed the output"):
        sight[""].output_error()


def test_steps_of_a_decoder_are_one_map() -> None:
    """Its source stays the same, or its cache grows; another text begins another map."""

    class Decoder(nn.Module):
        def forward(self, queries: Tensor, source: Tensor) -> Tensor:
            steps = []
            for step in range(queries.shape[1]):
                weights = torch.softmax(queries[:, step : step + 1] @ source.mT, -1)
                steps.append(weights @ source)
            return torch.cat(steps, 1)

    model = Decoder()
    with look(model) as sight:
        model(X[:, :3], X)
        model(X[:, :3], X + 1)
    assert [site.shape for site in sight] == [(B, 1, 3, T), (B, 1, 3, T)]
    torch.testing.assert_close(sight[""].weights()[:, 0], (X[:, :3] @ X.mT).softmax(-1))

    class Cached(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([(x[:, n : n + 1] @ x[:, : n + 1].mT).softmax(-1) @ x[:, : n + 1] for n in range(T)], 1)

    with look(model := Cached()) as sight:
        model(X)
    scores = (X @ X.mT).masked_fill(~CAUSAL, -torch.inf)
    torch.testing.assert_close(sight[""].weights()[:, 0], scores.softmax(-1))


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_what_is_written_to_weights_later_is_told(mode: Callable[[], object]) -> None:
    class Overwrites(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            weights = (x @ x.mT).softmax(-1)
            result = weights @ x
            weights.detach().zero_()
            return result

    with mode(), look(model := Overwrites()) as sight:  # type: ignore[attr-defined]
        model(X)
    if mode is torch.inference_mode:  # such a tensor does not count what is written to it, and is copied
        torch.testing.assert_close(sight[""].weights()[:, 0], (X @ X.mT).softmax(-1))
        return
    with pytest.raises(UserError, match="was modified in place after the call"):
        sight[""].weights()
    with look(model, keep=["max"]) as sight:
        model(X)
    torch.testing.assert_close(sight[""].max()[:, 0], (X @ X.mT).softmax(-1).amax(-1))


def test_an_error_in_the_model_leaves_nothing_behind() -> None:
    class Fails(NanoGPT):
        def forward(self, x: Tensor) -> Tensor:
            super().forward(x)
            raise ValueError("no")

    model = Fails()
    with pytest.raises(ValueError, match="no"), look(model):
        model(X)
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    with look(model := NanoGPT()) as sight:
        model(X)
    assert sight.sites == [""]


class Experts(nn.Module):
    """A mixture of all experts, by a softmax over them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(C, 4), nn.ModuleList(nn.Linear(C, C) for _ in range(4))

    def shares(self, x: Tensor) -> Tensor:
        return F.softmax((self.gate(x) / 2.0).float(), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        answers = torch.stack([expert(x) for expert in self.experts], -2)
        return (self.shares(x).unsqueeze(-1) * answers).sum(-2)


class ExpertsByProduct(Experts):
    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bte,btec->btc", self.shares(x), torch.stack([one(x) for one in self.experts], -2))


class LayerMean(nn.Module):
    """A mean of layers by learned shares, as in ELMo."""

    def __init__(self) -> None:
        super().__init__()
        self.shares = nn.Parameter(torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        layers = torch.stack([x, x + 1, x * 2])
        return (self.shares.softmax(0).view(-1, 1, 1, 1) * layers).sum(0)


class Gated(nn.Module):
    """Multiplies by a gate, place by place."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) * x + x.softmax(-1) * x


class Classifier(nn.Module):
    """Reads probabilities of classes as the mean of their vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.classify, self.vectors = nn.Linear(C, 7), nn.Embedding(7, C)

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(x).softmax(-1) @ self.vectors.weight[:]


@pytest.mark.parametrize("kind", [Experts, ExpertsByProduct, LayerMean, Gated, Classifier, Sigmoid])
def test_what_has_a_softmax_and_is_no_attention(kind: type[nn.Module]) -> None:
    """Beside attention it is no site."""
    with look(model := nn.Sequential(kind(), NanoGPT())) as sight:
        model(X)
    assert sight.sites == ["1"]
