"""EfficientNet-Lite against timm's model of the weights that were published for TensorFlow."""

import pytest
from image_references import assert_same, timm

from foveate import create
from foveate.interop.keys import efficientnet as keys


def test_as_timm() -> None:
    """With images of odd and even sizes, which are padded in another way."""
    model = create("efficientnet-lite0", classes=7, dropout=0.0, depth_dropout=0.0)
    reference = timm.create_model("tf_efficientnet_lite0", num_classes=7)
    assert_same(model, reference, keys.timm(model.config), (37, 53), (46, 64))


@pytest.mark.parametrize(("name", "count"), [("efficientnet-lite0", 4_652_008)])
def test_as_many_parameters_as_the_public_model(name: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
