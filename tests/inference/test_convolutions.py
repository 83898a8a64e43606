"""Convolutions laid out for a CPU: the same numbers, for any image size, and weights that stay as they are."""

import copy

import pytest
import torch
from torch import nn

from foveate import create
from foveate.inference.convolutions import LAYOUTS, PackedConvolution, PackedResidual
from foveate.inference.cpu import optimize_for_cpu
from foveate.nn import cpu_has_bfloat16


def trained(preset: str) -> nn.Module:
    """A model whose batch norms have statistics and factors that show whether they are applied."""
    model = create(preset, classes=7, channels=2)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.uniform_(-0.3, 0.3)
            module.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    return model.eval()


@pytest.mark.parametrize(
    "preset", ["resnet20", "plain20", "cnn-tiny", "googlenet-small-images", "convnext-small-images", "vgg-small-images"]
)
def test_packed_convolutions_compute_the_same(preset: str) -> None:
    model = trained(preset)
    before = copy.deepcopy(model.state_dict())
    packed = optimize_for_cpu(model)
    assert any(isinstance(part, PackedConvolution) for part in packed.modules())
    with torch.inference_mode():
        for batch, height, width in ((3, 18, 18), (1, 23, 19), (3, 18, 18), (5, 17, 16)):
            pixels = torch.randn(batch, 2, height, width)
            kept = pixels.clone()
            expected, found = model(pixels).logits, packed(pixels).logits
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))
            assert torch.equal(pixels, kept)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.skipif(not cpu_has_bfloat16(), reason="this CPU does not multiply in bfloat16")
def test_bfloat16_is_close() -> None:
    model, pixels = trained("resnet20"), torch.randn(3, 2, 18, 18)
    with torch.inference_mode():
        expected, found = model(pixels).logits, optimize_for_cpu(model, "bfloat16")(pixels).logits
    assert (found - expected).abs().max() < 0.06 * expected.abs().max()


def test_blocks_end_with_one_operation() -> None:
    packed = optimize_for_cpu(trained("resnet20"))
    assert all(isinstance(block, PackedResidual) for stage in packed.stages for block in stage)
    layer = packed.stages[0][0].last
    for side in range(4, 9):
        layer(torch.randn(1, 16, side, side))
    assert len(layer._layouts) == LAYOUTS
    with pytest.raises(ValueError, match="an optimized model cannot be saved"):
        packed.state_dict()
    with pytest.raises(ValueError, match="already optimized"):
        optimize_for_cpu(packed)
