"""Normalization of each vector of a sequence."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from foveate.errors import one_of

Norm = Callable[[int], nn.Module]
"""Makes the norm of vectors of a width."""


def norm(kind: str, epsilon: float = 1e-5) -> Norm:
    """Returns the class of a norm: "layer" (Ba et al. 2016), "layer-unbiased", without bias, or "rms", without mean and
    bias (Zhang and Sennrich 2019)."""
    kinds: dict[str, Any] = {
        "layer": nn.LayerNorm,
        "layer-unbiased": partial(nn.LayerNorm, bias=False),
        "rms": nn.RMSNorm,
    }
    one_of("norm_kind", kind, kinds)
    return lambda width: kinds[kind](width, eps=epsilon)
