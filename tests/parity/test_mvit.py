"""MViTv2 against timm's."""

import pytest
import torch
from image_references import assert_same_logits, assert_same_state, gradients, inverse, rename, scramble, timm

from foveate import create
from foveate.interop.keys import mvit as keys
from foveate.interop.keys.vit import join_projections, split_projections

SIZES = {"classes": 7, "width": 10, "head_width": 5, "blocks": (1, 2, 1, 2), "image_size": 64, "depth_dropout": 0.0}


def test_as_timm() -> None:
    """Also for images that neither patches nor stages divide."""
    config = timm.models.mvitv2.MultiScaleVitCfg(depths=(1, 2, 1, 2), embed_dim=10, num_heads=2)
    reference = scramble(timm.models.MultiScaleVit(config, img_size=(64, 64), num_classes=7))
    model = create("mvitv2-tiny", **SIZES).double()
    names = keys.timm(model.config)
    theirs = reference.state_dict()
    model.load_state_dict(rename(split_projections(theirs), inverse(names)))
    assert_same_state(join_projections(rename(model.state_dict(), names)), theirs)
    assert_same_logits(model, reference, (64, 64), (61, 63))
    assert_same_state(join_projections(rename(gradients(model), names)), gradients(reference))


@pytest.mark.parametrize(
    ("name", "public", "count"),
    [("mvitv2-tiny", "mvitv2_tiny", 24_173_320), ("mvitv2-base", "mvitv2_base", 51_472_744)],
)
def test_as_many_parameters_as_the_public_models(name: str, public: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    with torch.device("meta"):
        reference = timm.create_model(public)
    for each in (model, reference):
        assert sum(parameter.numel() for parameter in each.parameters()) == count
