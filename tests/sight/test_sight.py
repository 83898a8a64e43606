"""What is told of all sites together: the rollout, figures."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foveate import look
from foveate.errors import UserError
from foveate.nn import MultiHeadAttention
from foveate.sight import Sight
from foveate.viewer import page
from foveate.viewer.page.packing import panel_shape, precision

B, N, LAYERS = 2, 11, 3


class Stack(nn.Module):
    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(12, 3) for _ in range(layers))
        self.reader = MultiHeadAttention(12, 3)

    def forward(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x if source is None else self.reader(x, source)


def seen(**inputs: Tensor) -> Sight:
    with look(model := Stack()) as sight, torch.no_grad():
        model(torch.randn(B, N, 12) * 3, **inputs)
    return sight


def test_rollout() -> None:
    """The product of half the identity and half the mean of the heads, layer by layer."""
    sight = seen(source=torch.randn(B, 7, 12))
    expected = torch.eye(N)
    for layer in range(LAYERS):
        expected = (torch.eye(N) + sight[f"layers.{layer}"].weights().mean(1)) / 2 @ expected
    found = sight.rollout()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(-1), torch.ones(B, N))
    torch.testing.assert_close(sight.rollout(queries=[3, -1]), expected[:, [3, -1]])
    torch.testing.assert_close(sight.rollout("layers.[01]")[0, 5], sight.rollout("layers.[01]", [5])[0, 0])


class Shared(nn.Module):
    """One layer of attention that is used three times, as in ALBERT."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = MultiHeadAttention(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = x + self.layer(x)
        return x


def test_a_rollout_goes_through_a_layer_that_is_used_several_times() -> None:
    model = Shared()
    with torch.no_grad(), look(model) as sight:
        model(torch.randn(B, N, 12))
    expected = torch.eye(N).repeat(B, 1, 1)
    for name in ("layer", "layer#2", "layer#3"):
        expected = (expected + sight[name].weights().mean(1) @ expected) / 2
    torch.testing.assert_close(sight.rollout(), expected)
    with torch.no_grad(), look(model) as sight:
        model(torch.randn(B, N, 12))
        model(torch.randn(B, N, 12))
    with pytest.raises(UserError, match="a rollout needs one stack"):
        sight.rollout()


def test_rollout_needs_one_stack() -> None:
    sight = seen(source=torch.randn(B, N, 12))
    text = r"a rollout needs one stack of self-attention, but '\*' has layers\.\* and reader; choose sites="
    with pytest.raises(UserError, match=text):
        sight.rollout()
    assert sight.rollout("layers.*").shape == (B, N, N)
    with pytest.raises(UserError, match="has no self-attention with as many queries as keys"):
        seen(source=torch.randn(B, 7, 12)).rollout("reader")


class Towers(nn.Module):
    """Two stacks beside each other, in one list."""

    def __init__(self) -> None:
        super().__init__()
        self.towers = nn.ModuleList(Stack(2) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return sum(tower(x) for tower in self.towers)


def test_two_towers_are_two_rollouts() -> None:
    with look(model := Towers()) as sight, torch.no_grad():
        model(torch.randn(B, N, 12))
    names = r"has towers\.0\.layers\.\* and towers\.1\.layers\.\*; choose sites="
    for pattern in ("*", "towers.*"):
        with pytest.raises(UserError, match=names):
            sight.rollout(pattern)
    one, other = (sight.rollout(f"towers.{number}.*") for number in range(2))
    torch.testing.assert_close(sight.rollout("towers.*.layers.*"), other @ one)


@pytest.mark.parametrize(("count", "kept"), [(N, N), (300, 54)])
def test_a_saved_page_has_the_weights_of_the_model(tmp_path: Path, count: int, kept: int) -> None:
    """Every weight of a short map; of a long one the top keys of each row, what remains, and the pooled map."""
    with look(model := Stack(2)) as sight, torch.no_grad():
        model(torch.randn(B, count, 12) * 3)
    sight.save(tmp_path / "look.html", example=1)
    panels = [panel for panel in page.read(tmp_path / "look.html").sites if not panel.rollout]
    assert [panel.name for panel in panels] == sight.sites
    for panel in panels:
        site = sight[panel.name]
        exact, rows = site.weights()[1], panel.rows
        close = {"rtol": precision(panel_shape(panel).bits) * 1.001, "atol": 2**-20}
        top, keys = exact.topk(kept, -1)
        assert rows.keys.shape == (3, count, kept)
        assert np.array_equal(rows.keys, keys.sort(-1).values)
        np.testing.assert_allclose(rows.weights, exact.gather(-1, keys.sort(-1).values), **close)
        np.testing.assert_allclose(rows.rest, 1 - top.sum(-1), rtol=close["rtol"], atol=1e-6)
        np.testing.assert_allclose(panel.maps, site.pooled(64, 64)[1], rtol=precision(8), atol=1e-5)
        np.testing.assert_allclose(panel.entropy, site.entropy()[1].mean(-1), rtol=1e-3)


def test_only_some_sites() -> None:
    with look(model := Stack(), sites="layers.[02]") as sight:
        model(torch.randn(B, N, 12))
    assert sight.sites == ["layers.0", "layers.2"]
    with look(model, sites=["reader", "layers.1"]) as sight:
        model(torch.randn(B, N, 12))
    assert sight.sites == ["layers.1"]
    assert repr(sight) == "Sight of 1 sites: layers.1"


def test_a_figure_has_a_map_for_each_head() -> None:
    sight = seen()
    words = [f"word{place}" for place in range(N)]
    figure = sight.figure("layers.1", words, example=1)
    maps = [axes for axes in figure.axes if axes.get_xticklabels()][:3]
    for head, axes in enumerate(maps):
        assert [label.get_text() for label in axes.get_yticklabels()] == words
        drawn = torch.tensor(axes.collections[0].get_array().reshape(N, N))
        torch.testing.assert_close(drawn, sight["layers.1"].weights()[1, head])
    assert [text.get_text() for text in figure.texts] == [f"layers.1, head {head}" for head in range(3)]
    one = sight.figure("layers.1", heads=[2])
    assert [text.get_text() for text in one.texts] == ["layers.1, head 2"]


def test_a_figure_of_a_long_map_is_pooled() -> None:
    with look(model := Stack(1)) as sight, torch.no_grad():
        model(torch.randn(1, 150, 12))
    figure = sight.figure("layers.0", heads=[1])
    drawn = torch.tensor(figure.axes[0].collections[0].get_array().reshape(64, 64))
    torch.testing.assert_close(drawn, sight["layers.0"].pooled(64, 64)[0, 1])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][:4] == ["0", "2", "4", "7"]


def test_a_figure_with_other_tokens_than_the_map_has() -> None:
    with pytest.raises(UserError, match=r"layers\.0 has 11 queries, but 2 tokens were given"):
        seen().figure("layers.0", ["a", "b"])


def test_rollout_of_a_model_in_double_precision() -> None:
    layer, x = MultiHeadAttention(12, 3).double(), torch.randn(B, N, 12).double()
    with look(layer) as sight, torch.no_grad():
        layer(x)
    expected = (torch.eye(N).double() + sight[""].weights().mean(1)) / 2
    torch.testing.assert_close(sight.rollout(), expected)


def test_a_sight_shows_itself_in_a_notebook(tmp_path: Path) -> None:
    """As its page with the weights; before anything was seen, as it prints."""
    with look(model := Stack()) as sight, torch.no_grad():
        assert sight._repr_html_() == repr(sight)
        model(torch.randn(B, N, 12))
    shown = sight._repr_html_()
    (inner,) = re.findall(r'srcdoc="([^"]*)"', shown)
    (tmp_path / "look.html").write_text(html.unescape(inner), encoding="utf-8")
    document = page.read(tmp_path / "look.html")
    sites = [site for site in document.sites if not site.rollout]
    assert [site.name for site in sites] == sight.sites
    for site in sites:
        torch.testing.assert_close(torch.tensor(site.maps), sight[site.name].weights()[0], atol=0.01, rtol=0)


def test_a_sight_is_gone_through_and_parted() -> None:
    sight = seen(source=torch.randn(B, 7, 12))
    assert [site.name for site in sight] == sight.sites
    assert len(sight) == LAYERS + 1
    assert sight["layers.*"].sites == sight.sites[:LAYERS]
    assert sight["reader"].name == "reader"
    with pytest.raises(UserError, match="site"):
        sight["decoder.*"]


def test_a_notebook_shows_a_sight_with_tokens() -> None:
    names = [f"word-{number}" for number in range(N)]
    shown = seen().show(tokens=names, title="a title")
    assert "word-10" in html.unescape(shown._repr_html_())
    assert "a title" in html.unescape(shown._repr_html_())
    assert len(repr(shown)) < 80
