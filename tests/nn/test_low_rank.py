"""Low-rank updates: merged and unmerged layers agree, and only the updates are trained."""

import copy

import pytest
import torch
from torch import nn

from foveate import models
from foveate.errors import UserError
from foveate.nn import LowRank, add_low_rank, low_rank_updates, merge_low_rank

GPT = {"vocabulary": 13, "width": 12, "heads": 3, "layers": 2, "feedforward": 17, "max_length": 11, "dropout": 0.0}


def gpt() -> nn.Module:
    torch.manual_seed(3)
    return models.build("gpt", models.config_class("gpt")(**GPT))


def with_random_updates(model: nn.Module) -> nn.Module:
    for part in model.modules():
        if isinstance(part, LowRank):
            nn.init.normal_(part.up)
    return model


def test_it_begins_as_the_layer_was() -> None:
    layer = nn.Linear(7, 5)
    x = torch.randn(3, 7)
    torch.testing.assert_close(LowRank(layer, 2)(x), layer(x))


def test_merged_equals_unmerged_and_tied_weights_stay_tied() -> None:
    model = gpt().eval()
    tokens = torch.tensor([[1, 5, 7, 12, 3]])
    before = model(tokens).logits
    chosen = add_low_rank(model, 2, ("self.query", "self.value", "feedforward.inner"))
    assert len(chosen) == 6
    adapted = with_random_updates(model)(tokens).logits
    assert (adapted - before).abs().max() > 0.1
    names = set(gpt().state_dict())
    merge_low_rank(model)
    assert set(model.state_dict()) == names
    torch.testing.assert_close(model(tokens).logits, adapted, rtol=1e-4, atol=1e-5)
    assert model.output.weight is model.embedding.weight


def test_only_the_updates_are_trained() -> None:
    model = gpt()
    frozen = copy.deepcopy(model.state_dict())
    add_low_rank(model, 2, ("self.query",))
    trained = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert trained == [f"stack.blocks.{block}.self.query.{side}" for block in (0, 1) for side in ("down", "up")]
    assert list(low_rank_updates(model)) == trained
    model(torch.tensor([[2, 4, 6]])).logits.sum().backward()
    assert all((weight.grad is None) != (name in trained) for name, weight in model.named_parameters())
    merge_low_rank(model)
    assert all(torch.equal(value, frozen[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("rank", "layers", "message"),
    [
        (2, ("self.querry",), "unknown linear layer for low-rank updates 'self.querry'; did you mean self.query"),
        (2, ("output",), "output shares its weights with another layer"),
        (0, ("self.query",), "the rank of low-rank updates is 0"),
    ],
)
def test_layers_that_cannot_be(rank: int, layers: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        add_low_rank(gpt(), rank, layers)
