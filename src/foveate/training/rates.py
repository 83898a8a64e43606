"""Which weights of a model are trained, and how fast: settings by the place of a weight in the model."""

import difflib
from collections.abc import Iterable

from torch import nn

from foveate.errors import UserError, at_least, unknown
from foveate.training.settings import Training

WRAPPED = "module."
"""What the names of weights begin with inside torch's wrapper of replicas."""


def freeze(model: nn.Module, settings: Training) -> None:
    """Stop the training of the weights that the settings name. Raises UserError for a name that no weight has, and
    where no weight is left to train."""
    check_places(model, settings)
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        if factor(name, settings) == 0:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise UserError("all weights are frozen, so that nothing is left to train")


def factor(name: str, settings: Training) -> float:
    """Returns the factor of the learning rate for the weight of this name: that of the longest place that holds it."""
    name = name.removeprefix(WRAPPED)
    if any(_inside(name, place) for place in settings.freeze):
        return 0.0
    places = [place for place in settings.rate_factors if _inside(name, place)]
    return settings.rate_factors[max(places, key=len)] if places else 1.0


def check_places(model: nn.Module, settings: Training) -> None:
    """Raise UserError for a place that is not in the model, with the nearest names, and for a negative factor."""
    names = [name for name, _ in model.named_parameters()]
    for place in (*settings.freeze, *settings.rate_factors):
        if not any(_inside(name, place) for name in names):
            known = _places(names)
            near = difflib.get_close_matches(place, known, n=1, cutoff=0.5)
            raise unknown("place of weights in the model", place, known if near else _places(names, 1))
    for place, value in settings.rate_factors.items():
        at_least(0, f"the rate factor of {place}", value)


def _inside(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def _places(names: Iterable[str], most: int | None = None) -> set[str]:
    """All beginnings of the names, of at most `most` parts."""
    parts = [name.split(".")[:most] for name in names]
    return {".".join(each[:depth]) for each in parts for depth in range(1, len(each) + 1)}
