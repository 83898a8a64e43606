"""The part of a trained model that reads images, for another model that builds on such a part."""

from dataclasses import asdict, replace
from typing import Any, get_args, get_type_hints

from torch import nn

from foveate import models
from foveate.contracts import GridEncoder
from foveate.models.vision.image_encoder import ENCODERS, ImageBody, feature_widths, image_encoder
from foveate.nn import without_memory
from foveate.tasks.start.weights import Start

JOIN = "places.join"
"""The layer that joins positions to the places of an image, in models that have one."""

OTHER_SIZE = 3
"""A preset without learned positions has the same weights for images that are so many times as large."""


def part_path(model: nn.Module) -> str | None:
    """Where the part that reads images is in a model: "" where it is the whole, None where there is none."""
    if isinstance(model, GridEncoder):
        return ""
    parts = dict(model.named_modules())
    return next((path for path in ENCODERS if isinstance(parts.get(path), GridEncoder)), None)


def image_part(start: Start) -> Start | None:
    """The part of a trained model that reads images, as a model of its own; None where there is none."""
    with without_memory():
        model = models.build(start.family, start.config)
    path = part_path(model)
    if path is None or not hasattr(part := model.get_submodule(path), "config"):
        return None
    if not path:
        return start
    config: Any = part.config
    own = {name.removeprefix(f"{path}."): one for name, one in start.tensors.items() if name.startswith(f"{path}.")}
    return replace(start, family=models.family_of(config), config=config, tensors=own, tokenizer=None, is_part=True)


def body_field(family: str) -> str | None:
    """The field of a family's config that says which model reads images; None where there is no choice."""
    kinds = get_type_hints(models.config_class(family))
    return next((name for name, kind in kinds.items() if ImageBody in get_args(kind)), None)


def is_part_of(preset: Any, part: Start) -> bool:
    """Whether all weights of a preset, for images of any size, are among those of a trained model."""
    if not isinstance(preset, str) or models.preset(preset).family != part.family:
        return False
    size = OTHER_SIZE * getattr(part.config, "image_size", 224)
    with without_memory():
        wanted = image_encoder(preset, part.config.channels, size).state_dict()
    return all(name in part.body and part.body[name].shape == one.shape for name, one in wanted.items())


def fill_image_part(model: nn.Module, start: Start, part: Start) -> None:
    """Give a model the part of a trained model that reads images, and, where both have it alike, the layer that joins
    positions.

    Raises UserError where it does not fit.
    """
    path = part_path(model)
    assert path, "models that begin so have such a part"
    part.fill(model.get_submodule(path), part=True)
    state = model.state_dict()
    joins = {name: one for name, one in start.tensors.items() if name.startswith(f"{JOIN}.")}
    if joins and all(name in state and state[name].shape == one.shape for name, one in joins.items()):
        model.load_state_dict(state | joins)


def sizes_of_body(part: Start, stride: int | None) -> dict[str, Any]:
    """The body of a trained model, down to a map of this stride, as plain values of a config's field."""
    return asdict(ImageBody.of(part.config, stride))


def count_maps(part: Start) -> int:
    """How many feature maps a body has."""
    with without_memory():
        return len(feature_widths(models.build(part.family, part.config)))
