"""EfficientNet-Lite against timm's model of the weights that were published for TensorFlow."""

import pytest
from image_references import assert_same, timm

from foveate import create

BLOCKS = (1, 2, 2, 3, 3, 4, 1)


def names() -> dict[str, str]:
    """timm's name for each module: the first layer of a block widens it, except in the first stage."""
    found = {"stem.convolution": "conv_stem", "stem.norm": "bn1", "output": "classifier"}
    found |= {"features.convolution": "conv_head", "features.norm": "bn2"}
    for stage, count in enumerate(BLOCKS):
        layers = ("conv_pw", "conv_dw", "conv_pwl") if stage else ("conv_dw", "conv_pw")
        for block in range(count):
            # The first block of a stage has another shape than its input, so nothing is added.
            branch = f"stages.{stage}.{block}" + (".branch" if block else "")
            for number, layer in enumerate(layers):
                found[f"{branch}.{number}.convolution"] = f"blocks.{stage}.{block}.{layer}"
                found[f"{branch}.{number}.norm"] = f"blocks.{stage}.{block}.bn{number + 1}"
    return found


def test_as_timm() -> None:
    """With images of odd and even sizes, which are padded in another way."""
    model = create("efficientnet-lite0", classes=7, dropout=0.0, depth_dropout=0.0)
    assert_same(model, timm.create_model("tf_efficientnet_lite0", num_classes=7), names(), (37, 53), (46, 64))


@pytest.mark.parametrize(("name", "count"), [("efficientnet-lite0", 4_652_008)])
def test_as_many_parameters_as_the_public_model(name: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
