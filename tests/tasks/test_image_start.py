"""The image encoder of one model for another: which tensors are taken, from which kinds of models, mistakes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import foveate
from foveate.errors import UserError
from foveate.tasks.start.image_encoder import encoder_path, fill_image_encoder

FOLDER = Path("runs/other")


def make(preset: str, **sizes: Any) -> nn.Module:
    return foveate.create(preset, **{"vocabulary": 7, "channels": 3, "image_size": 16, **sizes})


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_the_encoder_of_a_captioner_goes_to_all_others() -> None:
    given = make("show-attend-tell-tiny", width=8, embedding=8)
    asked = make("show-ask-tiny", classes=3)
    fill_image_encoder(asked, given.state_dict(), FOLDER)
    assert same(asked.places, given.places)  # with the layer that joins positions
    written = make("captioner-transformer-tiny")
    fill_image_encoder(written, given.state_dict(), FOLDER)
    assert same(written.image_encoder, given.places.encoder)
    back = make("show-tell-tiny")
    fill_image_encoder(back, written.state_dict(), FOLDER)
    assert same(back.places.encoder, given.places.encoder)
    assert not same(back.places.join, given.places.join)


def test_what_fits_not_is_refused() -> None:
    model = make("show-tell-tiny")
    text = foveate.create("gpt-tiny", vocabulary=7)
    assert encoder_path(text.state_dict()) is None
    with pytest.raises(UserError, match="runs/other and the model have no image encoder in common"):
        fill_image_encoder(model, text.state_dict(), FOLDER)
    with pytest.raises(UserError, match=r"of the image encoder is \(32, 1, 7, 7\), but \(32, 3, 7, 7\) in the model"):
        fill_image_encoder(model, make("show-tell-tiny", channels=1).state_dict(), FOLDER)
    with pytest.raises(UserError, match="of an image encoder: it is another one than the model's"):
        fill_image_encoder(model, make("vit-captioner-tiny").state_dict(), FOLDER)
