"""The feature maps that other models build on."""

import pytest
import torch

import foveate
from foveate import models
from foveate.contracts import GridEncoder

ANY_SIZE = ("alexnet", "cnn", "convnext", "efficientnet", "googlenet", "mvit", "resnet", "swin", "vgg", "zfnet")

PRESETS = [name for name, preset in models.presets().items() if preset.family in ANY_SIZE]


@pytest.mark.parametrize("name", PRESETS)
def test_width_and_stride(name: str) -> None:
    """Images of any size; this many strides more give as many places more."""
    model = foveate.create(name, device="meta", classes=5, channels=1)
    assert isinstance(model, GridEncoder)
    small, high, wide = (
        model.grid(torch.empty(2, 1, height, width, device="meta")).shape
        for height, width in ((71, 83), (71 + 3 * model.stride, 83), (71, 83 + 5 * model.stride))
    )
    assert small[:2] == (2, model.grid_width)
    assert high == (2, model.grid_width, small[2] + 3, small[3])
    assert wide == (2, model.grid_width, small[2], small[3] + 5)


@pytest.mark.parametrize("name", ["resnet20", "convnext-small-images", "efficientnet-lite0", "googlenet-small-images"])
def test_images_with_channels_last_stay_so(name: str) -> None:
    """No layer turns them round, which would take longer than some convolutions."""
    model = foveate.create(name, classes=5).eval().to(memory_format=torch.channels_last)
    pixels = torch.randn(2, 3, 64, 64).to(memory_format=torch.channels_last)
    grid = model.grid(pixels)
    assert min(grid.shape[1:]) > 1
    assert grid.is_contiguous(memory_format=torch.channels_last)
    assert not grid.is_contiguous()
