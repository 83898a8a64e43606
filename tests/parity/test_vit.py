"""The vision Transformer against transformers' and timm's."""

from pathlib import Path

import pytest
import torch
from image_references import assert_same_logits, assert_same_state, gradients, inverse, rename, scramble, timm
from safetensors.torch import load_file
from transformers import ViTConfig, ViTForImageClassification

from foveate import create
from foveate.interop.keys import vit as keys

SIZES = {"classes": 7, "width": 15, "heads": 3, "feedforward": 22, "layers": 2, "patch": 5, "image_size": 15}


def test_as_transformers_with_its_files(tmp_path: Path) -> None:
    """Also for images that are not square, whose positions are interpolated."""
    sizes = {"hidden_size": 15, "num_attention_heads": 3, "intermediate_size": 22, "num_hidden_layers": 2}
    config = ViTConfig(**sizes, patch_size=5, image_size=15, num_labels=7, layer_norm_eps=1e-3)
    reference = scramble(ViTForImageClassification(config))
    reference.save_pretrained(tmp_path / "weights")
    theirs = load_file(tmp_path / "weights" / "model.safetensors")
    model = create("vit-base-16", **SIZES, epsilon=1e-3).double()
    names = keys.transformers(model.config)
    model.load_state_dict(rename(theirs, inverse(names)))
    assert_same_state(rename(model.state_dict(), names), theirs)
    assert_same_logits(
        model, lambda pixels: reference(pixels, interpolate_pos_encoding=True).logits, (15, 15), (20, 35)
    )
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(parameter.grad)
    reference.save_pretrained(tmp_path / "gradients")  # so that they have the names of files
    assert_same_state(rename(gradients(model), names), load_file(tmp_path / "gradients" / "model.safetensors"))


def test_as_timm_with_layer_scale() -> None:
    sizes = {"img_size": 15, "patch_size": 5, "embed_dim": 15, "depth": 2, "num_heads": 3, "mlp_ratio": 22 / 15}
    reference = scramble(timm.create_model("deit3_small_patch16_224", num_classes=7, **sizes))
    model = create("deit3-small-16", **SIZES, depth_dropout=0.0).double()
    names = keys.timm(model.config)
    theirs = reference.state_dict()
    model.load_state_dict(rename(keys.split_projections(theirs), inverse(names)))
    assert_same_state(keys.join_projections(rename(model.state_dict(), names)), theirs)
    assert_same_logits(model, reference, (15, 15))
    assert_same_state(keys.join_projections(rename(gradients(model), names)), gradients(reference))


@pytest.mark.parametrize(
    ("name", "public", "count"),
    [
        ("vit-base-16", "vit_base_patch16_224", 86_567_656),
        ("vit-large-16", "vit_large_patch16_224", 304_326_632),
        ("deit3-small-16", "deit3_small_patch16_224", 22_059_496),
        ("deit3-base-16", "deit3_base_patch16_224", 86_585_320),
    ],
)
def test_as_many_parameters_as_the_public_models(name: str, public: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    with torch.device("meta"):
        reference = timm.create_model(public)
    for each in (model, reference):
        assert sum(parameter.numel() for parameter in each.parameters()) == count
