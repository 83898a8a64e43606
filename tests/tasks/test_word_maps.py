"""Shares of attention inside boxes, and where each token of a caption looked."""

import pytest
import torch

from foveate import create
from foveate.metrics.attention_in_boxes import area, share_in_box
from foveate.sight import look
from foveate.special_tokens import LEARNED
from foveate.tasks.answers.word_maps import word_maps


def test_places_count_by_their_area_in_the_box() -> None:
    """2 x 4 places; the box has the right half of the first column's top place, the next one and no more."""
    weights = torch.tensor([[0.1, 0.2, 0.0, 0.0], [0.3, 0.3, 0.1, 0.0]])
    assert share_in_box(weights, (0.125, 0.0, 0.5, 0.5)) == pytest.approx(0.05 + 0.2)
    assert share_in_box(weights, (0.0, 0.25, 1.0, 1.0)) == pytest.approx(0.15 + 0.7)
    assert area((0.125, 0.0, 0.5, 0.5)) == pytest.approx(3 / 16)


@pytest.mark.parametrize("preset", ["show-attend-tell-tiny", "captioner-transformer-tiny"])
def test_the_map_of_a_token_is_of_the_step_that_writes_it(preset: str) -> None:
    torch.manual_seed(1)
    model = create(preset, vocabulary=11).eval()
    pixels = torch.randn(2, 3, 24, 24)
    found = word_maps(model, pixels, [[5, 6, 7], [8]], LEARNED)
    assert [tuple(one.shape) for one in found] == [(3, 3, 3), (1, 3, 3)]
    with torch.inference_mode(), look(model, sites=["decoder", "*cross"]) as sight:
        model(pixels, torch.tensor([[1, 5, 6], [1, 0, 0]]))
    every = [sight[site].weights().mean(1) for site in sight.sites]
    assert any(torch.allclose(found[0].flatten(1), weights[0]) for weights in every)
    torch.testing.assert_close(found[1].sum((1, 2)), torch.ones(1))


def test_a_model_without_attention_has_no_maps() -> None:
    assert word_maps(create("show-tell-tiny", vocabulary=11).eval(), torch.randn(1, 3, 24, 24), [[5]], LEARNED) is None
