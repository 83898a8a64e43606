"""AlexNet and VGG against torchvision's; what only the papers have, and ZFNet, against the sizes that they tell."""

import pytest
import torch
from image_references import assert_same, torchvision
from torch import nn

from foveate import create
from foveate.errors import UserError
from foveate.interop.keys import alexnet, vgg

SMALL = {"classes": 7, "hidden": 19, "dropout": 0.0}


def small_head(reference: nn.Module, width: int) -> nn.Module:
    """A model of torchvision, made on "meta", with smaller hidden layers and memory for all."""
    linear = [number for number, layer in enumerate(reference.classifier) if isinstance(layer, nn.Linear)]
    for number, inputs, outputs in zip(linear, (width, 19, 19), (19, 19, 7), strict=True):
        reference.classifier[number] = nn.Linear(inputs, outputs, device="meta")
    return reference.to_empty(device="cpu")


def test_alexnet_as_torchvision() -> None:
    with torch.device("meta"):
        reference = torchvision.models.AlexNet(dropout=0.0)
    model = create("alexnet-one-tower", **SMALL)
    assert_same(model, small_head(reference, 256 * 6 * 6), alexnet.torchvision(model.config), (67, 97))


def test_vgg_as_torchvision() -> None:
    layers = torchvision.models.vgg.make_layers([5, "M", 7, 7, "M", 11, "M", 13, 13, "M"])
    with torch.device("meta"):
        reference = torchvision.models.VGG(layers, init_weights=False, dropout=0.0)
    model = create("vgg16", blocks=(1, 2, 1, 2), widths=(5, 7, 11, 13), **SMALL)
    assert_same(model, small_head(reference, 13 * 7 * 7), vgg.torchvision(model.config), (37, 53))


def test_two_towers_are_two_networks_up_to_the_third_layer() -> None:
    """The first half of the second layer reads the first half of the first layer alone, where nothing normalizes."""
    model = create("alexnet", **SMALL, norm="none")
    tower = create("alexnet", **SMALL, norm="none", widths=(48, 128, 384, 384, 256), towers=1)
    with torch.no_grad():
        for layer in (0, 4):
            for name, weight in tower.features[layer].named_parameters():
                weight.copy_(getattr(model.features[layer], name)[: len(weight)])
    pixels = torch.randn(2, 3, 67, 71)
    torch.testing.assert_close(tower.features[:8](pixels), model.features[:8](pixels)[:, :128])


def test_response_normalization_by_the_equation_of_section_3_3() -> None:
    activity = 100 * torch.randn(2, 11, 3, 5)
    expected = torch.empty_like(activity)
    for channel in range(11):
        neighbours = activity[:, max(0, channel - 2) : channel + 3]
        expected[:, channel] = activity[:, channel] / (2 + 1e-4 * neighbours.square().sum(1)) ** 0.75
    torch.testing.assert_close(create("alexnet", **SMALL).features[2](activity), expected)


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("alexnet", [55, 27, 27, 13, 13, 13, 13, 6]),
        ("zfnet", [110, 55, 26, 13, 13, 13, 13, 6]),
    ],
)
def test_feature_maps_have_the_papers_sizes(name: str, sides: list[int]) -> None:
    """What convolutions and pooling make of 224 x 224 pixels, in their order."""
    x, found = torch.empty(1, 3, 224, 224, device="meta"), []
    for layer in create(name, device="meta", classes=1000).features:
        x = layer(x)
        if isinstance(layer, (nn.Conv2d, nn.MaxPool2d)):
            found.append(x.shape[-1])
    assert found == sides


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("alexnet", 60_965_224),
        ("alexnet-one-tower", 61_100_840),
        ("zfnet", 62_357_608),
        ("vgg16", 138_357_544),
        ("vgg19", 143_667_240),
    ],
)
def test_as_many_parameters_as_the_public_models(name: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


LEAST = {"alexnet": 63, "alexnet-small-images": 15, "zfnet": 47, "zfnet-small-images": 18, "vgg16": 32}
LEAST["vgg-small-images"] = 16


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_the_smallest_images(name: str, least: int) -> None:
    model = create(name, device="meta", classes=7)
    pixels = torch.empty(2, 3, least + 4, least, device="meta")
    assert model(pixels).logits.shape == (2, 7)
    assert model.grid(pixels).shape[1] == model.grid_width
    with pytest.raises(UserError) as caught:
        model(pixels[..., 1:])
    told = f"images of {least + 4} x {least - 1} pixels are too small for this model: it needs {least} x {least}"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("alexnet", {"widths": (4, 6)}, "widths (4, 6) must have 5 numbers, one for each convolution"),
        (
            "alexnet",
            {"towers": 5},
            "widths (96, 256, 384, 384, 256) must be multiples of 5, to divide into as many parts",
        ),
        (
            "vgg16",
            {"blocks": (1, 2)},
            "blocks (1, 2) and widths (64, 128, 256, 512, 512) must have one number for each stage",
        ),
    ],
)
def test_sizes_that_do_not_fit(name: str, values: dict, message: str) -> None:
    with pytest.raises(UserError) as caught:
        create(name, device="meta", classes=7, **values)
    assert str(caught.value) == message
