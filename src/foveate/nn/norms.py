"""Normalization of each vector of a sequence."""

from collections.abc import Callable

from torch import nn

from foveate.errors import one_of

Norm = Callable[[int], nn.Module]
"""Makes the norm of vectors of a width."""


def norm(kind: str, epsilon: float = 1e-5) -> Norm:
    """Returns the class of a norm: "layer" (Ba et al. 2016), or "rms", without mean and bias (Zhang and Sennrich
    2019)."""
    one_of("norm_kind", kind, ("layer", "rms"))
    made = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[kind]
    return lambda width: made(width, eps=epsilon)
