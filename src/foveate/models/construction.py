"""Makes models of a family or a preset: the part of this package that needs torch."""

from dataclasses import fields
from typing import Any

import torch
from torch import nn

from foveate.config import from_dict
from foveate.errors import UserError, at_least, check_literals, out_of_memory
from foveate.models import config_class, family_module, preset
from foveate.models.idle_settings import check_settings_act
from foveate.nn import without_memory


def build(family: str, config: Any) -> nn.Module:
    """A model of a family, with random weights.

    UserError for sizes that cannot be, do not fit together, or take more memory than there is.
    """
    module = family_module(family)
    _check(config)
    try:
        return module.MODEL(config)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        raise UserError(f"a {family} of these sizes takes more memory than this machine has") from None


_MOST, _MOST_LAYERS = 2**31, 10_000
"""No size of a model is larger, and none has more layers: each takes memory before it has any weight."""


def create(name: str, device: torch.device | str | None = None, **values: Any) -> nn.Module:
    """A preset's model with random weights; `values` fill or replace fields of its config. Sizes that data decides
    are those of the preset's paper, where it has one.

    On `device="meta"` it has shapes and no memory. UserError for an unknown preset or field, for a value that nothing
    would read, and as `build`.
    """
    chosen = preset(name)
    kind = config_class(chosen.family)
    own = {**chosen.values, **chosen.sizes}
    config = from_dict(kind, {**own, **values}, name)
    usual = {**{part.name: part.default for part in fields(kind)}, **own}
    check_settings_act(config, [part for part, value in values.items() if value != usual[part]])
    place = torch.device(device or torch.get_default_device())
    with without_memory() if place.type == "meta" else place:
        return build(chosen.family, config)


def _check(config: Any) -> None:
    """Checks the rules for the fields of all families: a size is at least 1, what is dropped is a share."""
    check_literals(config)
    for part in fields(config):
        value = getattr(config, part.name)
        most = _MOST_LAYERS if part.name.endswith(("layers", "blocks")) else _MOST
        for number in value if isinstance(value, tuple) else (value,):
            if type(number) is int:
                at_least(1, part.name, number)
                if number > most:
                    raise UserError(f"{part.name} is {number:,}, but no model has more than {most:,}")
        if part.name.endswith("dropout") and value is not None and not 0 <= value < 1:
            raise UserError(f"{part.name} is {value}, but must be at least 0 and below 1")
