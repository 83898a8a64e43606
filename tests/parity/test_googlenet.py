"""GoogLeNet against torchvision's, and against the counts of the paper's table 1."""

import pytest
import torch
from image_references import assert_same, torchvision

from foveate import create
from foveate.errors import UserError
from foveate.interop.keys import googlenet as keys

INCEPTIONS = ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b")


def test_as_torchvision() -> None:
    model = create("googlenet-batch-norm", classes=7, auxiliary=True, dropout=0.0, auxiliary_dropout=0.0)
    reference = torchvision.models.GoogLeNet(7, init_weights=False, dropout=0.0, dropout_aux=0.0)
    assert_same(model, reference, keys.torchvision(model.config), (37, 53))


@pytest.mark.parametrize(
    ("name", "auxiliary", "count"),
    [
        ("googlenet", False, 6_998_552),
        ("googlenet", True, 13_378_280),
        ("googlenet-batch-norm", False, 6_624_904),
        ("googlenet-batch-norm", True, 13_004_888),
    ],
)
def test_as_many_parameters_as_the_public_models(name: str, auxiliary: bool, count: int) -> None:
    model = create(name, device="meta", classes=1000, auxiliary=auxiliary)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_feature_maps_have_the_papers_sizes() -> None:
    """The third column of table 1."""
    model = create("googlenet", device="meta", classes=1000)
    found = {}
    for name, module in model.inceptions.items():
        module.register_forward_hook(lambda _, inputs, output, name=name: found.update({name: tuple(output.shape[1:])}))
    model(torch.empty(1, 3, 224, 224, device="meta"))
    widths = (256, 480, 512, 512, 512, 528, 832, 832, 1024)
    sides = (28, 28, 14, 14, 14, 14, 14, 7, 7)
    assert found == {name: (width, side, side) for name, width, side in zip(INCEPTIONS, widths, sides, strict=True)}


@pytest.mark.parametrize(
    ("name", "least"), [("googlenet", 31), ("googlenet-batch-norm", 15), ("googlenet-small-images", 8)]
)
def test_the_smallest_images(name: str, least: int) -> None:
    model = create(name, device="meta", classes=7)
    pixels = torch.empty(2, 3, least, least + 4, device="meta")
    assert model(pixels).logits.shape == (2, 7)
    with pytest.raises(UserError, match=f"it needs {least} x {least}"):
        model(pixels[..., 1:, :])
