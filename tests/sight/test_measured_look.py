"""Looks with maps of another measure than weights: the same as what a sight gives in Python."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from foveate import look
from foveate.errors import UserError
from foveate.sight import Sight
from foveate.sight.measured_look import MEASURES, finished, measured_look

transformers = pytest.importorskip("transformers")

IDS = torch.tensor([[5, 9, 2, 7, 1, 9, 4]])


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    sizes: dict[str, Any] = {"n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 11, "n_positions": 16}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval()


def best(output: Any) -> Tensor:
    return output.logits[:, -1].log_softmax(-1).amax(-1).sum()


def by_hand(model: Any) -> dict[str, Sight]:
    """The sites of each measure, as one computes them in Python."""
    with look(model, values=True, gradients=True) as sight:
        target = best(model(IDS))
    return {
        "weights": sight,
        "without-sinks": sight.without_sinks(),
        "values": sight.norms(),
        "gradients": sight.gradients(target),
    }


@pytest.mark.parametrize("measure", [*MEASURES])
def test_a_measure_is_what_the_sight_gives(model: Any, measure: str) -> None:
    sight, output = measured_look(model, lambda: model(IDS), measure, target=best)
    sight = finished(sight, measure)
    with torch.no_grad():
        torch.testing.assert_close(output.logits, model(IDS).logits, atol=1e-5, rtol=1e-4)
    assert {site.shows for site in sight} == {measure}
    if measure == "relevance":
        with look(model, gradients=True) as other:
            wanted = other.relevance(best(model(IDS)))
        assert sight.sites == ["transformer.h.*.attn"]
        torch.testing.assert_close(sight[sight.sites[0]].weights()[:, 0] + torch.eye(7), wanted)
        return
    for site, wanted in zip(sight, by_hand(model)[measure], strict=True):
        torch.testing.assert_close(site.weights(), wanted.weights(), atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(site.max(), wanted.weights().amax(-1), atol=1e-6, rtol=1e-4)


def test_other_measures_leave_no_graph_behind(model: Any) -> None:
    sight, output = measured_look(model, lambda: model(IDS), "values")
    assert not output.logits.requires_grad
    assert not any(site.weights().requires_grad for site in sight)


@pytest.mark.parametrize(
    ("measure", "target", "message"),
    [
        ("gradients", None, "gives no answer with a probability, which gradients would be of"),
        ("relevance", None, "gives no answer with a probability, which relevance would be of"),
        ("sizes", best, "unknown measure 'sizes'"),
    ],
)
def test_measures_that_there_are_not(model: Any, measure: str, target: Callable | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        measured_look(model, lambda: model(IDS), measure, target=target)


def test_relevance_needs_self_attention() -> None:
    layer = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    x, y = torch.randn(1, 3, 6), torch.randn(1, 5, 6)
    with pytest.raises(UserError, match="this model has none: --measure gradients"):
        measured_look(layer, lambda: layer(x, y, y)[0], "relevance", target=lambda output: output.sum())


def test_a_page_stores_numbers_above_one(model: Any, tmp_path: Any) -> None:
    """They are divided by the largest one, which comes back; rows of long maps keep what their other keys have."""
    from foveate.viewer.page import read

    large = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=11)).eval()
    with torch.no_grad():
        large.transformer.h[0].attn.c_proj.weight.mul_(300)
    ids = torch.arange(300)[None] % 11
    sight, _ = measured_look(large, lambda: large(ids), "values")
    weights = sight["transformer.h.0.attn"].weights()[0].numpy()
    assert weights.max() > 1
    sight.save(tmp_path / "page.html")
    (panel,) = read(tmp_path / "page.html").sites
    assert (panel.shows, panel.rollout) == ("values", False)
    assert panel.unit == pytest.approx(weights.max(), rel=1e-5)
    total = panel.rows.weights.sum(-1) + panel.rows.rest
    assert panel.rows.keys.shape[2] < 300
    torch.testing.assert_close(torch.from_numpy(total), torch.from_numpy(weights.sum(-1)), rtol=0.01, atol=1e-3)


def test_a_page_of_gradients_has_no_rollout(model: Any) -> None:
    from foveate.viewer.document import make_document

    sight, _ = measured_look(model, lambda: model(IDS), "gradients", target=best)
    assert [panel.name for panel in make_document(sight).sites] == sight.sites
