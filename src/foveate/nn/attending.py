"""Whether a model attends at all."""

from torch import nn


def attends(model: nn.Module) -> bool:
    """Returns whether a part of a model of foveate's calls `attention.attend`: it says so by an attribute of this
    name."""
    return any(getattr(part, "attends", False) for part in model.modules())
