"""The networks of the vision presets without their classifiers, for models that build on a feature map."""

from dataclasses import fields

from torch import nn

from foveate import models
from foveate.config import from_dict
from foveate.contracts import GridEncoder
from foveate.errors import UserError

CLASSIFIER = ("output", "head", "pool", "auxiliary")
"""Names of the parts that `grid` does not use."""


def image_encoder(name: str, channels: int, image_size: int) -> nn.Module:
    """The network of a vision preset, with `grid` alone, a `foveate.contracts.GridEncoder`.

    `image_size` is the height and width of the images, for encoders that learn positions. Raises UserError for a
    preset without a feature map.
    """
    preset = models.preset(name)
    kind = models.config_class(preset.family)
    known = {part.name for part in fields(kind)}
    given = {"classes": 1, "hidden": 1, "channels": channels, "image_size": image_size}
    sizes = {field: value for field, value in given.items() if field in known}
    if "channels" not in known:
        raise UserError(f"{name} reads no images: it cannot be an image encoder")
    encoder = models.build(preset.family, from_dict(kind, {**preset.values, **sizes}, name))
    if not isinstance(encoder, GridEncoder):
        raise UserError(f"{name} has no feature map of images: it cannot be an image encoder")
    for part in CLASSIFIER:
        if hasattr(encoder, part):
            delattr(encoder, part)
    return encoder
