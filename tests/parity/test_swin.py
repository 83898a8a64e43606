"""The Swin Transformer against transformers' and timm's."""

from pathlib import Path

import pytest
import torch
from image_references import assert_same_logits, assert_same_state, gradients, inverse, rename, scramble, timm
from safetensors.torch import load_file
from transformers import SwinConfig, SwinForImageClassification

from foveate import create
from foveate.interop.keys import swin as keys
from foveate.interop.keys.vit import join_projections, split_projections

SIZES = {"classes": 7, "patch": 2, "width": 6, "head_width": 2, "blocks": (2, 3, 2), "window": 3, "depth_dropout": 0.0}


def test_as_transformers_with_its_files(tmp_path: Path) -> None:
    """Also for images that neither patches nor windows nor stages divide."""
    sizes = {"embed_dim": 6, "depths": [2, 3, 2], "num_heads": [3, 6, 12], "window_size": 3, "patch_size": 2}
    reference = scramble(SwinForImageClassification(SwinConfig(**sizes, image_size=24, num_labels=7))).eval()
    reference.save_pretrained(tmp_path / "weights")
    theirs = load_file(tmp_path / "weights" / "model.safetensors")
    model = create("swin-tiny", **SIZES).double()
    names = keys.transformers(model.config)
    model.load_state_dict(rename(theirs, inverse(names)))
    assert_same_state(rename(model.state_dict(), names), theirs)
    assert_same_logits(model, lambda pixels: reference(pixels).logits, (48, 48), (37, 53), (43, 29))
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(parameter.grad)
    reference.save_pretrained(tmp_path / "gradients")  # so that they have the names of files
    assert_same_state(rename(gradients(model), names), load_file(tmp_path / "gradients" / "model.safetensors"))


def test_as_timm() -> None:
    """In the last stage one side of the map is no longer than a window."""
    sizes = {"embed_dim": 6, "depths": (2, 3, 2), "num_heads": (3, 6, 12), "window_size": 3, "patch_size": 2}
    reference = timm.models.SwinTransformer(**sizes, img_size=(24, 48), num_classes=7, drop_path_rate=0.0)
    scramble(reference).eval()
    model = create("swin-tiny", **SIZES).double()
    names = keys.timm(model.config)
    theirs = reference.state_dict()
    model.load_state_dict(rename(split_projections(theirs), inverse(names)))
    assert_same_state(join_projections(rename(model.state_dict(), names)), theirs)
    assert_same_logits(model, reference, (24, 48))
    assert_same_state(join_projections(rename(gradients(model), names)), gradients(reference))


@pytest.mark.parametrize(
    ("name", "public", "count"),
    [
        ("swin-tiny", "swin_tiny_patch4_window7_224", 28_288_354),
        ("swin-base", "swin_base_patch4_window7_224", 87_768_224),
    ],
)
def test_as_many_parameters_as_the_public_models(name: str, public: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    with torch.device("meta"):
        reference = timm.create_model(public)
    for each in (model, reference):
        assert sum(parameter.numel() for parameter in each.parameters()) == count
