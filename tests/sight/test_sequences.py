"""Examples that are parts of one input, as one map."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import attend
from foveate.errors import UserError
from foveate.sight.sequences import JoinedSequences


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return attend(x, x, x)


def test_a_query_sees_its_own_sequence_alone() -> None:
    """3 sequences of 5, of which the first token is left out; the order is that of the second token of each, and so
    on."""
    model = Attention()
    with foveate.look(model) as sight:
        model(torch.randn(3, 2, 5, 7, generator=torch.Generator().manual_seed(1)))
    (site,) = sight
    places = [(example, position) for position in range(1, 5) for example in range(3)]
    joined = JoinedSequences("joined", site, places)
    weights = site.weights()
    expected = torch.zeros(1, 2, 12, 12)
    for row, (example, query) in enumerate(places):
        for column, (other, key) in enumerate(places):
            if example == other:
                expected[0, :, row, column] = weights[example, :, query, key]
    assert joined.shape == (1, 2, 12, 12)
    torch.testing.assert_close(joined.weights(), expected)
    torch.testing.assert_close(joined.weights([1], slice(3, 8), [11, 0]), expected[:, 1:, 3:8][..., [11, 0]])
    torch.testing.assert_close(joined.received(), expected.sum(-2))
    torch.testing.assert_close(joined.top(2).weights, expected.topk(2).values)
    with pytest.raises(UserError, match="joins sequences"):
        joined.distance()
