"""The small convolutional classifier with self-attention."""

import pytest
import torch

import foveate
from foveate.errors import UserError


def test_where_it_attends() -> None:
    """After the second stage, at half the image's size, rounded up: everywhere from everywhere."""
    model = foveate.create("cnn-attentive-tiny", classes=5, channels=1).eval()
    with foveate.look(model) as sight:
        model(torch.randn(3, 1, 13, 17))
    assert sight.sites == ["stages.1.3"]
    weights = sight["stages.1.3"].weights()
    assert weights.shape == (3, 1, 7 * 9, 7 * 9)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 63))


def test_until_it_learns_the_attention_layer_changes_nothing() -> None:
    model, plain = (foveate.create(name, classes=5).eval() for name in ("cnn-attentive-tiny", "cnn-tiny"))
    missing, unexpected = plain.load_state_dict(model.state_dict(), strict=False)
    assert not missing
    assert {key.rsplit(".", 2)[0] for key in unexpected} == {"stages.1.3", "stages.1"}
    pixels = torch.randn(2, 3, 11, 7)
    assert torch.equal(model(pixels).logits, plain(pixels).logits)


def test_a_stage_that_there_is_not() -> None:
    with pytest.raises(UserError, match="attend_after names stage 4, but there are 3"):
        foveate.create("cnn-tiny", classes=5, attend_after=(1, 4))
