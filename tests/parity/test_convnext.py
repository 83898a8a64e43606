"""ConvNeXt against torchvision's and timm's."""

import pytest
import torch
from image_references import assert_same, timm, torchvision

from foveate import create
from foveate.errors import UserError
from foveate.interop.keys import convnext as keys

BLOCKS, WIDTHS = (1, 2, 1, 1), (6, 10, 14, 22)


def test_as_timm() -> None:
    model = create("convnext-tiny", classes=7, blocks=BLOCKS, widths=WIDTHS, depth_dropout=0.0, layer_scale=0.3)
    reference = timm.models.ConvNeXt(num_classes=7, depths=BLOCKS, dims=WIDTHS)
    assert_same(model, reference, keys.timm(model.config), (37, 69))


@pytest.mark.parametrize(("name", "count"), [("convnext-tiny", 28_589_128), ("convnext-base", 88_591_464)])
def test_as_many_parameters_as_the_public_models(name: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
    with torch.device("meta"):
        public = getattr(torchvision.models, name.replace("-", "_"))()
    assert sum(parameter.numel() for parameter in public.parameters()) == count


@pytest.mark.parametrize(("name", "least"), [("convnext-tiny", 32), ("convnext-small-images", 8)])
def test_the_smallest_images(name: str, least: int) -> None:
    model = create(name, device="meta", classes=7)
    pixels = torch.empty(2, 3, least + 5, least, device="meta")
    assert model(pixels).logits.shape == (2, 7)
    with pytest.raises(UserError, match=f"it needs {least} x {least}"):
        model(pixels[..., 1:])
