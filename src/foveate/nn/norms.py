"""Normalization of each vector of a sequence."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import one_of

Norm = Callable[[int], nn.Module]
"""Makes the norm of vectors of a width."""


class ShiftedRMSNorm(nn.Module):
    """An RMSNorm whose factor is `1 + weight`, so that weight decay draws it to 1 (Gemma, 2024)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(width)), eps

    def forward(self, x: Float[Tensor, "*places C"]) -> Float[Tensor, "*places C"]:
        return F.rms_norm(x, self.weight.shape, 1 + self.weight, self.eps)


KINDS: dict[str, Callable[..., nn.Module]] = {
    "layer": nn.LayerNorm,
    "layer-unbiased": partial(nn.LayerNorm, bias=False),
    "rms": nn.RMSNorm,
    "rms-shifted": ShiftedRMSNorm,
}


def norm(kind: str, epsilon: float = 1e-5) -> Norm:
    """Returns the class of a norm: "layer" (Ba et al. 2016), "layer-unbiased", without
    bias; "rms", without mean and bias (Zhang and Sennrich 2019);
    or "rms-shifted", whose factor is `1 + weight`."""
    one_of("norm_kind", kind, KINDS)
    made = KINDS[kind]
    return lambda width: made(width, eps=epsilon)
