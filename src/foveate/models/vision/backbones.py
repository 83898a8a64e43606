"""The model whose feature map another model reads."""

from typing import Any

from foveate import models
from foveate.contracts import GridEncoder
from foveate.errors import UserError

HEADS = ("output", "head", "auxiliary", "pool")
"""What models of images call the parts that come after their feature map."""


def build_backbone(preset: str, channels: int) -> Any:
    """A preset's model without its classifier: a `GridEncoder`. Raises UserError for presets without a feature map."""
    model = models.create(preset, classes=1, channels=channels)
    if not isinstance(model, GridEncoder):
        raise UserError(f"{preset} has no feature map, so it cannot be a backbone")
    for name in HEADS:
        if hasattr(model, name):
            delattr(model, name)
    return model
