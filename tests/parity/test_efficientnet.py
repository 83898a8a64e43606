"""EfficientNet-Lite against timm's model of the weights that were published for TensorFlow."""

import pytest
from image_references import assert_same, rename, timm

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


def test_names_of_the_package_of_pretrained_weights() -> None:
    """The blocks of all stages are numbered together: the first has no expansion, the last one is that of stage 7."""
    model = create("efficientnet-lite0", device="meta", classes=1000)
    shapes = {
        key: tuple(value.shape) for key, value in rename(model.state_dict(), keys.lite_package(model.config)).items()
    }
    assert len(shapes) == len(model.state_dict()) == 296
    assert shapes["_blocks.0._depthwise_conv.weight"] == (32, 1, 3, 3)
    assert shapes["_blocks.0._bn2.running_mean"] == (16,)
    assert shapes["_blocks.3._expand_conv.weight"] == (144, 24, 1, 1)
    assert shapes["_blocks.15._project_conv.weight"] == (320, 1152, 1, 1)
    assert shapes["_conv_head.weight"] == (1280, 320, 1, 1)
    assert "_blocks.0._expand_conv.weight" not in shapes
    assert "_blocks.16._bn0.weight" not in shapes
