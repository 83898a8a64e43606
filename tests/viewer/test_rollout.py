"""The rollouts that a page shows after the sites of a model."""

import numpy as np
import pytest
import torch
from torch import nn

from foveate.attention import causal
from foveate.nn import MultiHeadAttention
from foveate.sight import Sight, look
from foveate.viewer import rollout
from foveate.viewer.document import make_document
from foveate.viewer.page import read, save
from foveate.viewer.rollout import rollouts
from foveate.viewer.stacks import is_whole

TOKENS = 11


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.ModuleList(MultiHeadAttention(6, 2) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(3 * x, mask=causal())
        return x


def seen(sites: str = "*") -> Sight:
    model = Stack()
    with torch.inference_mode(), look(model, sites=sites) as sight:
        model(torch.randn(2, TOKENS, 6, generator=torch.Generator().manual_seed(2)))
    return sight


def test_a_page_ends_with_the_rollout(tmp_path: object) -> None:
    """Its weights are those of `Sight.rollout`, of the example that is shown; a page keeps it."""
    sight = seen()
    document = make_document(sight, list("abcdefghijk"), example=1)
    assert [panel.name for panel in document.sites] == [*sight.sites, "rollout of layers.*"]
    assert [panel.rollout for panel in document.sites] == [False, False, False, True]
    np.testing.assert_allclose(document.sites[-1].rows.weights[0], sight.rollout()[1], atol=1e-6)
    assert list(document.sites[-1].keys.labels) == list("abcdefghijk")
    save(path := f"{tmp_path}/look.html", document)
    found = read(path).sites[-1]
    assert (found.rollout, found.group, found.layer) == (True, "rollout of layers.*", "")
    np.testing.assert_allclose(found.rows.weights, document.sites[-1].rows.weights, rtol=2e-4)


def test_the_measures_are_those_of_the_weights() -> None:
    (site,) = rollouts(sight := seen()).values()
    whole = sight.rollout()
    assert site.shape == (2, 1, TOKENS, TOKENS)
    torch.testing.assert_close(site.weights(queries=[3, 7], keys=slice(0, 5))[:, 0], whole[:, [3, 7], :5])
    torch.testing.assert_close(site.entropy()[:, 0], -torch.xlogy(whole, whole).sum(-1))
    torch.testing.assert_close(site.top(2).weights[:, 0], whole.topk(2).values)
    assert site.top(2).keys[0, 0, 0].tolist() == [0, -1]  # the first position reaches only itself
    pooled = site.pooled(2, 3)[0, 0]
    torch.testing.assert_close(pooled[1, 2], whole[0, 5:, 7:].sum(1).mean())
    torch.testing.assert_close(pooled.sum(1), torch.ones(2))


def test_there_is_none_of_a_part_of_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rollouts(seen("layers.[12]")) == {}
    assert len(make_document(seen(), sites=["layers.0", "layers.2"]).sites) == 2
    monkeypatch.setattr(rollout, "LONGEST", TOKENS - 1)
    assert rollouts(seen()) == {}


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        (["h.0.attn", "h.1.attn"], True),
        (["block.0.layer.0.self", "block.1.layer.0.self"], True),
        (["h.0.attn"], False),
        (["h.1.attn", "h.2.attn"], False),
        (["stages.0.blocks.0", "stages.1.blocks.1"], False),
    ],
)
def test_whole_stacks(names: list[str], whole: bool) -> None:
    assert is_whole(names) is whole


def test_the_entropy_of_a_part_is_that_of_its_shares() -> None:
    """Rows of maps that are cut sum to less than 1."""
    sight = seen()
    cut = sight.cut(dict.fromkeys(sight.sites, (TOKENS, TOKENS - 4)))
    for site in cut:
        shares = site.weights() / site.weights().sum(-1, keepdim=True)
        torch.testing.assert_close(site.entropy(), -torch.xlogy(shares, shares).sum(-1))
    square = sight.cut(dict.fromkeys(sight.sites, (TOKENS - 4, TOKENS - 4)))
    for layers in (square, sight):
        (site,) = rollouts(layers).values()
        assert bool((site.entropy() <= np.log(site.shape[3]) + 1e-6).all())
        shares = site.weights() / site.weights().sum(-1, keepdim=True)
        torch.testing.assert_close(site.entropy(), -torch.xlogy(shares, shares).sum(-1))
