"""Image models without their classifiers, for models that build on a feature map: of presets, and of any sizes."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any

import torch.nn.functional as F
import tyro
from jaxtyping import Float
from torch import Tensor, nn

from foveate import models
from foveate.config import from_dict
from foveate.contracts import GridEncoder
from foveate.errors import UserError
from foveate.nn import without_memory


@dataclass
class ImageBody:
    """An image model of any sizes, such as that of a Hugging Face folder, without its classifier."""

    family: str
    sizes: dict[str, Any]
    """The fields of its config."""
    is_cut: bool = False
    """The last stages of the trained model are left out, and its last norm with them."""

    @classmethod
    def of(cls, config: Any, stride: int | None = None) -> "ImageBody":
        """The body of a model of this config, without its last stages whose places are more than `stride` pixels
        apart."""
        family = models.family_of(config)
        with without_memory():
            model: Any = models.build(family, config)
        coarse = _count_coarse(model, stride)
        return cls(family, asdict(_without_stages(model, coarse) if coarse else config), coarse > 0)

    @property
    def config(self) -> Any:
        """The config of its family. Raises UserError for fields that cannot be."""
        return from_dict(models.config_class(self.family), self.sizes, f"the image encoder, a {self.family}")


_FLAG: Any = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="PRESET",
    instance_from_str=lambda words: words[0],
    is_instance=lambda value: isinstance(value, str | ImageBody),
    str_from_instance=lambda value: [value if isinstance(value, str) else f"a {value.family}"],
)

Backbone = Annotated[str | ImageBody, _FLAG]
"""The type of a config's field for the image model that is built on: a preset, or the body that a training began from.
"""

CLASSIFIER = ("output", "head", "pool", "auxiliary")
"""Names of the parts that `grid` does not use."""

ENCODERS = ("backbone", "image_encoder", "places.encoder", "images")
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


def image_encoder(backbone: Backbone, channels: int, image_size: int, dropout: float | None = None) -> nn.Module:
    """The network of a vision preset or of a body, with `grid` alone, a `foveate.contracts.GridEncoder`.

    `image_size` is the height and width of the images, for presets that learn positions; a body keeps its own, and
    interpolates. `dropout` replaces that of the preset, where it has one. Raises UserError for a preset without a
    feature map, and for a body that reads images of other channels.
    """
    if isinstance(backbone, ImageBody):
        family, config = backbone.family, backbone.config
        if config.channels != channels:
            raise UserError(f"images have {channels} channels, but the trained image encoder reads {config.channels}")
    else:
        family, config = _preset_config(backbone, channels, image_size, dropout)
    encoder = models.build(family, config)
    if isinstance(backbone, ImageBody) and backbone.is_cut:
        encoder.norm = nn.Identity()
    if not isinstance(encoder, GridEncoder):
        raise UserError(f"a {family} has no feature map of images: it cannot be an image encoder")
    for part in CLASSIFIER:
        if hasattr(encoder, part):
            delattr(encoder, part)
    return encoder


def _count_coarse(encoder: Any, stride: int | None) -> int:
    """How many of the last feature maps are too coarse; of a model with one map none."""
    maps = len(feature_widths(encoder))
    return 0 if stride is None else sum(encoder.stride >> finer > stride for finer in range(maps - 1))


def _without_stages(encoder: Any, count: int) -> Any:
    """The config of a model without the stages of its last `count` feature maps."""
    config = encoder.config
    if hasattr(config, "stages"):
        return replace(config, stages=encoder.last_of_map[-1 - count] + 1)
    stages = len(config.blocks)
    tuples = {part.name: getattr(config, part.name) for part in fields(config)}
    by_stage = {name: value for name, value in tuples.items() if isinstance(value, tuple) and len(value) == stages}
    return replace(config, **{name: value[:-count] for name, value in by_stage.items()})


def _preset_config(name: str, channels: int, image_size: int, dropout: float | None) -> tuple[str, Any]:
    """The family of a vision preset, and its config for images like these. Raises UserError where it reads none."""
    preset = models.preset(name)
    kind = models.config_class(preset.family)
    known = {part.name for part in fields(kind)}
    given: dict[str, float] = {"classes": 1, "hidden": 1, "channels": channels, "image_size": image_size}
    given |= {} if dropout is None else {"dropout": dropout}
    if "channels" not in known:
        raise UserError(f"{name} reads no images: it cannot be an image encoder")
    sizes = {field: value for field, value in given.items() if field in known}
    return preset.family, from_dict(kind, {**preset.values, **sizes}, name)


def feature_widths(encoder: Any) -> list[int]:
    """The channels of the feature maps of an encoder, from the finest to the coarsest."""
    return list(getattr(encoder, "grid_widths", [encoder.grid_width]))


def feature_maps(encoder: Any, pixels: Float[Tensor, "B c h w"], count: int) -> list[Float[Tensor, "B _ _ _"]]:
    """The `count` coarsest feature maps of an encoder, from the finest of them; each has half the rows and columns of
    the one before."""
    found: list[Tensor] = encoder.grids(pixels) if hasattr(encoder, "grids") else [encoder.grid(pixels)]
    return found[-count:]
