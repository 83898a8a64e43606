"""The vision Transformer against transformers' and timm's."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from image_references import rename, timm
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import ViTConfig, ViTForImageClassification

from foveate import create
from foveate.interop.keys import vit as keys

SIZES = {"classes": 7, "width": 15, "heads": 3, "feedforward": 22, "layers": 2, "patch": 5, "image_size": 15}


def assert_same(
    model: nn.Module, reference: nn.Module, logits: Callable[[Tensor], Tensor], *sizes: tuple[int, int]
) -> None:
    """Both compute the same logits of images of these sizes and the same gradients of the pixels."""
    for height, width in sizes:
        pixels = torch.randn(3, 3, height, width, dtype=torch.float64)
        ours, other = pixels.clone().requires_grad_(), pixels.clone().requires_grad_()
        found, expected = model(ours).logits, logits(other)
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
        weights = torch.randn_like(expected)
        (found * weights).sum().backward()
        (expected * weights).sum().backward()
        torch.testing.assert_close(ours.grad, other.grad, atol=1e-9, rtol=0)


def scramble(model: nn.Module) -> nn.Module:
    """Random numbers for all parameters: norms that start at 1 and biases at 0 would hide mistakes."""
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.normal_(std=0.3)
    return model


def assert_same_state(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        torch.testing.assert_close(
            value, expected[name], atol=1e-9, rtol=0, msg=lambda text, name=name: f"{name}: {text}"
        )


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def inverse(names: dict[str, str]) -> dict[str, str]:
    return {theirs: ours for ours, theirs in names.items()}


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
    assert_same(
        model, reference, lambda pixels: reference(pixels, interpolate_pos_encoding=True).logits, (15, 15), (20, 35)
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
    assert_same(model, reference, reference, (15, 15))
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
