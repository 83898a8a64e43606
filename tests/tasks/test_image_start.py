"""The image encoder of one model for another: which tensors are taken, from which kinds of models, mistakes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import foveate
from foveate import models
from foveate.errors import UserError
from foveate.tasks.start.image_part import body_field, fill_image_part, image_part, is_part_of
from foveate.tasks.start.weights import Start

FOLDER = Path("runs/other")


def make(preset: str, **sizes: Any) -> nn.Module:
    return foveate.create(preset, **{"vocabulary": 7, "channels": 3, "image_size": 16, **sizes})


def start_of(model: Any) -> Start:
    return Start(FOLDER, [], models.family_of(model.config), model.config, model.state_dict(), None)


def fill(model: nn.Module, given: nn.Module) -> None:
    start = start_of(given)
    part = image_part(start)
    assert part is not None
    fill_image_part(model, start, part)


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_the_encoder_of_a_captioner_goes_to_all_others() -> None:
    given = make("show-attend-tell-tiny", width=8, embedding=8)
    asked = make("show-ask-tiny", classes=3)
    fill(asked, given)
    assert same(asked.places, given.places)  # with the layer that joins positions
    written = make("captioner-transformer-tiny")
    fill(written, given)
    assert same(written.image_encoder, given.places.encoder)
    back = make("show-tell-tiny")
    fill(back, written)
    assert same(back.places.encoder, given.places.encoder)
    assert not same(back.places.join, given.places.join)


def test_which_models_have_one() -> None:
    """And which presets are built of the same weights, in images of any size."""
    assert image_part(start_of(foveate.create("gpt-tiny", vocabulary=7))) is None
    assert image_part(start_of(foveate.create("sar-tiny", vocabulary=7))) is None  # its own kind of network
    cnn, vit = start_of(foveate.create("efficientnet-lite0")), start_of(foveate.create("vit-light", classes=3))
    assert image_part(cnn) is cnn
    assert is_part_of("efficientnet-lite0-16", cnn)
    assert not is_part_of("efficientnet-b0", cnn)
    assert not is_part_of("resnet14", cnn)
    assert not is_part_of("vit-light", vit)  # which learns positions of other images


@pytest.mark.parametrize("family", ["detr", "rt-detr", "segmenter", "pose", "rnn-captioner", "show-ask", "clip"])
def test_the_field_of_the_body(family: str) -> None:
    assert body_field(family) in ("backbone", "image_encoder")
    assert body_field("resnet") is None
    assert body_field("vision-encoder-decoder") == "vision"


def test_what_fits_not_is_refused() -> None:
    model = make("show-tell-tiny")
    with pytest.raises(UserError, match=r"stem.0.convolution.weight' is \(32, 1, 7, 7\), but \(32, 3, 7, 7\) in the"):
        fill(model, make("show-tell-tiny", channels=1))
    with pytest.raises(UserError, match=r"runs/other has no tensor 'stem\.0.*: it is another model"):
        fill(model, make("vit-captioner-tiny"))
