"""Image GPT: its colours, and what each pixel is predicted from."""

import pytest
import torch

import foveate
from foveate.errors import UserError

SMALL = {"classes": 5, "image_size": 5, "width": 12, "heads": 3, "feedforward": 11, "layers": 2}


def test_pixels_become_the_nearest_colour() -> None:
    """Three levels of each of two channels: -2, 0 and 2."""
    model = foveate.create("imagegpt-tiny", **SMALL, channels=2, colours=9)
    pixels = torch.zeros(1, 2, 5, 5)
    pixels[0, :, 0, :4] = torch.tensor([[-1.9, 0.9, 1.1, 5], [-1.1, -0.9, 0.3, -3]])
    numbers = model.quantize(pixels)
    assert numbers[0, 0].tolist() == [0, 4, 7, 6, 4]
    expected = torch.tensor([[-2.0, -2], [0, 0], [2, 0], [2, -2], [0, 0]])
    assert torch.equal(model.palette[numbers[0, 0]], expected)


@pytest.mark.parametrize(("predict", "first"), [("pixels", 8), ("label", 7)])
def test_each_pixel_is_predicted_from_those_before_it(predict: str, first: int) -> None:
    """Row by row: pixel 7 is in the second row. What predicts a pixel does not know it."""
    model = foveate.create("imagegpt-tiny", **SMALL, predict=predict).eval()
    pixels = torch.randn(2, 1, 5, 5)
    changed = pixels.clone()
    changed[:, :, 1, 2] = -changed[:, :, 1, 2].sign() * 2
    if predict == "pixels":
        states = model(pixels).logits, model(changed).logits
    else:
        states = tuple(model.grid(each).flatten(2).mT for each in (pixels, changed))
    differs = ((states[0] - states[1]).abs() > 1e-6).any(-1)
    assert differs.tolist() == [[place >= first for place in range(25)]] * 2


def test_what_cannot_be() -> None:
    with pytest.raises(UserError, match="colours is 10, but must be a power of levels: 2 channels"):
        foveate.create("imagegpt-tiny", **SMALL, channels=2, colours=10)
    model = foveate.create("imagegpt-tiny", **SMALL)
    with pytest.raises(UserError, match="images of 5 x 7 pixels are not of this model's size, 5 x 5"):
        model(torch.randn(2, 1, 5, 7))
