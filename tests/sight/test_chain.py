"""Two maps in a row are the product of their weights."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import attend
from foveate.errors import UserError
from foveate.sight import Sight
from foveate.sight.chain import Chain


class Attention(nn.Module):
    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return attend(queries, keys, keys)


@pytest.fixture(scope="module")
def recorded() -> Sight:
    """5 words look at 3 learned queries, which look at 7 patches."""
    model = nn.ModuleDict({"reader": Attention(), "writer": Attention()})
    model.forward = lambda words, queries, patches: model["writer"](words, model["reader"](queries, patches))
    generator = torch.Generator().manual_seed(1)
    with foveate.look(model) as sight:
        model(*(torch.randn(2, 3, count, 11, generator=generator) for count in (5, 3, 7)))
    return sight


def test_weights_are_a_product(recorded: Sight) -> None:
    chain = Chain("words-image", recorded["writer"], recorded["reader"], [6, 1, 2])
    first, second = recorded["writer"].weights(), recorded["reader"].weights().mean(1, keepdim=True)
    expected = (first @ second)[..., [6, 1, 2]]
    assert chain.shape == expected.shape == (2, 3, 5, 3)
    torch.testing.assert_close(chain.weights(), expected)
    torch.testing.assert_close(chain.weights([2], slice(1, 4), [1]), expected[:, 2:, 1:4, 1:2])
    torch.testing.assert_close(chain.received(), expected.sum(-2))
    torch.testing.assert_close(chain.top(1).weights[..., 0], expected.amax(-1))
    whole = Chain("words-image", recorded["writer"], recorded["reader"], range(7))
    torch.testing.assert_close(whole.weights().sum(-1), torch.ones(2, 3, 5))


def test_each_key_must_be_a_query(recorded: Sight) -> None:
    with pytest.raises(UserError, match="writer has 3 keys, but writer has 5 queries"):
        Chain("words-image", recorded["writer"], recorded["writer"], [0])
    with pytest.raises(UserError, match="no common distance"):
        Chain("words-image", recorded["writer"], recorded["reader"], [0]).distance()
