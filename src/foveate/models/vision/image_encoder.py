"""The networks of the vision presets without their classifiers, for models that build on a feature map."""

from dataclasses import fields

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate import models
from foveate.config import from_dict
from foveate.contracts import GridEncoder
from foveate.errors import UserError

CLASSIFIER = ("output", "head", "pool", "auxiliary")
"""Names of the parts that `grid` does not use."""

ENCODERS = ("backbone", "image_encoder", "places.encoder")
"""Where models have their image encoder."""


class FixedBatchNorm2d(nn.BatchNorm2d):
    """Batch norm by the mean and the deviation that it has, in training too."""

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


def fix_norms(encoder: nn.Module) -> None:
    """Turns the batch norms of a network into fixed ones."""
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.__class__ = FixedBatchNorm2d


def encoder_of(model: nn.Module) -> nn.Module | None:
    """The image encoder in a model that builds on a feature map; None for another model."""
    parts = dict(model.named_modules())
    return next((parts[name] for name in ENCODERS if name in parts), None)


def image_encoder(name: str, channels: int, image_size: int, dropout: float | None = None) -> nn.Module:
    """The network of a vision preset, with `grid` alone, a `foveate.contracts.GridEncoder`.

    `image_size` is the height and width of the images, for encoders that learn positions; `dropout` replaces that of
    the preset, where it has one. Raises UserError for a preset without a feature map.
    """
    preset = models.preset(name)
    kind = models.config_class(preset.family)
    known = {part.name for part in fields(kind)}
    given: dict[str, float] = {"classes": 1, "hidden": 1, "channels": channels, "image_size": image_size}
    given |= {} if dropout is None else {"dropout": dropout}
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
