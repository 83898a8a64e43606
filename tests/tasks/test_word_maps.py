"""Shares of attention inside boxes, and where each token of a caption looked."""

import pytest
import torch

from foveate import create
from foveate.data.tokens.tokenizers import train_words
from foveate.forms.caption import CaptionAnswer, CaptionText
from foveate.metrics.attention_in_boxes import area, share_in_box
from foveate.sight import look


def test_places_count_by_their_area_in_the_box() -> None:
    """2 x 4 places; the box has the right half of the first column's top place, the next one and no more."""
    weights = torch.tensor([[0.1, 0.2, 0.0, 0.0], [0.3, 0.3, 0.1, 0.0]])
    assert share_in_box(weights, (0.125, 0.0, 0.5, 0.5)) == pytest.approx(0.05 + 0.2)
    assert share_in_box(weights, (0.0, 0.25, 1.0, 1.0)) == pytest.approx(0.15 + 0.7)
    assert area((0.125, 0.0, 0.5, 0.5)) == pytest.approx(3 / 16)


def form() -> CaptionText:
    return CaptionText(tokenizer=train_words(["a b c d e f g"] * 2, 99))


@pytest.mark.parametrize("preset", ["show-attend-tell-tiny", "captioner-transformer-tiny"])
def test_the_map_of_a_token_is_of_the_step_that_writes_it(preset: str) -> None:
    torch.manual_seed(1)
    model, writes, answer = create(preset, vocabulary=11).eval(), form(), CaptionAnswer(tokens=[5, 6, 7])
    pixels = torch.randn(1, 3, 24, 24)
    with torch.inference_mode(), look(model) as sight:
        model(pixels=pixels, **writes.teach(answer))
    rows = writes.rows(sight, model, answer, 0)
    assert [row.weights.shape for row in rows] == [(9,)] * 3
    with torch.inference_mode(), look(model, sites=["decoder", "*cross"]) as sight:
        model(pixels, torch.tensor([[1, 5, 6]]))
    every = [sight[site].weights().mean(1) for site in sight.sites]
    found = torch.stack([row.weights for row in rows])
    assert any(torch.allclose(found, weights[0], atol=1e-6) for weights in every)
    torch.testing.assert_close(found.sum(1), torch.ones(3))


def test_a_model_without_attention_has_no_maps() -> None:
    model, writes, answer = create("show-tell-tiny", vocabulary=11).eval(), form(), CaptionAnswer(tokens=[5])
    with torch.inference_mode(), look(model) as sight:
        model(pixels=torch.randn(1, 3, 24, 24), **writes.teach(answer))
    assert writes.rows(sight, model, answer, 0) == []
