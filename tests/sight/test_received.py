"""What keys receive from the queries that count, against known values: padding of a batch gives no attention."""

import pytest
import torch
from torch import Tensor, nn

from foveate import look
from foveate.attention import Memory, ScaledDot, attend, causal, padding
from foveate.errors import UserError
from foveate.sight import Site

B, H, D, N = 2, 3, 5, 150  # longer than a block of rows of one measure


class Attends(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, mask=padding(torch.tensor([N, 4])))


class Writes(nn.Module):
    """Attends to a first part of a text at once, and then to itself step by step."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        first = N - 3
        memory = Memory(k[..., :first, :], v[..., :first, :], ScaledDot())
        outputs = [attend(q[..., :first, :], memory, mask=causal())]
        for step in range(first, N):
            memory.append(k[..., step : step + 1, :], v[..., step : step + 1, :])
            outputs.append(attend(q[..., step : step + 1, :], memory))
        return torch.cat(outputs, -2)


def looked(model: nn.Module, **options) -> Site:
    with look(model, **options) as sight, torch.no_grad():
        model(*(torch.randn(B, H, N, D) for _ in range(3)))
    return sight[""]


def check(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("model", [Attends(), Writes()], ids=["at once", "in steps"])
def test_only_the_queries_that_count_give_attention(model: nn.Module) -> None:
    """By their number in each example, or by a mask such as `attention_mask`, with padding on the left."""
    site = looked(model)
    weights, mask = site.weights(), torch.ones(B, N, dtype=torch.long)
    mask[0, :5] = 0
    for lengths in (torch.tensor([N - 2, 4]), [N - 2, 4]):
        check(site.received(lengths), torch.stack([weights[0, :, : N - 2].sum(-2), weights[1, :, :4].sum(-2)]))
    check(site.received(queries=[0, N]), torch.stack([torch.zeros(H, N), weights[1].sum(-2)]))
    for given in (mask, mask.bool(), mask.float(), mask.tolist()):
        check(site.received(given), torch.stack([weights[0, :, 5:].sum(-2), weights[1].sum(-2)]))
    check(site.received(), weights.sum(-2))


def test_even_weights_of_a_padded_batch() -> None:
    """Two words look at each other evenly, and a padding query at both: 1 each from the words, 1.5 with padding."""

    class Even(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return attend(x, x, x, mask=padding(torch.tensor([2])))

    with look(model := Even()) as sight:
        model(torch.zeros(1, 1, 3, D))
    assert sight[""].received([2]).tolist() == [[[1, 1, 0]]]
    assert sight[""].received().tolist() == [[[1.5, 1.5, 0]]]


def test_one_example_without_a_dimension_of_its_own() -> None:
    class Alone(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return attend(x, x, x)

    with look(model := Alone()) as sight:
        model(torch.randn(7, D))
    weights = sight[""].weights()
    check(sight[""].received([3]), weights[:, :, :3].sum(-2))


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([N + 1, 2], "lengths of queries are 0 to 150, not 2 to 151"),
        ([-1, 2], "lengths of queries are 0 to 150, not -1 to 2"),
        ([1, 2, 3], "queries are chosen by 2 lengths or a mask of 2 x 150, not by torch.int64 of 3"),
        ([True, False], "not by torch.bool of 2"),
        ([[1, 2], [3]], "queries are chosen by 2 lengths or a mask of 2 x 150"),
        (torch.full((B, N), 2), "a mask of queries holds 0 and 1 only"),
    ],
)
def test_queries_that_are_neither_lengths_nor_a_mask(queries, message: str) -> None:
    with pytest.raises(UserError, match=message):
        looked(Attends()).received(queries)


def test_queries_that_count_need_more_than_a_kept_measure() -> None:
    with pytest.raises(UserError, match="received by some queries needs queries and keys, but only received was kept"):
        looked(Attends(), keep="received").received([N, 7])


def test_an_encoders_padding_gives_no_attention() -> None:
    """BERT of transformers: what the words of a padded sentence receive from words is what they receive alone."""
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 53, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": H}
    model = transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=16)).eval()
    ids, words = torch.randint(3, 53, (B, 9)), (torch.arange(9) < torch.tensor([[9], [4]])).long()
    with look(model) as sight, torch.no_grad():
        model(ids, attention_mask=words)
    with look(model) as alone, torch.no_grad():
        model(ids[1:, :4])
    for name in sight.sites:
        counted = sight[name].received(words)[1]
        check(counted[:, :4], alone[name].received()[0])
        check(counted.sum(-1), torch.full((H,), 4.0))
        check(sight[name].received()[1].sum(-1), torch.full((H,), 9.0))
