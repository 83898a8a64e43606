"""Dropout with fast random numbers on a CPU, and stochastic depth."""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

LEVELS = 2**16
"""Dropout compares numbers of 16 random bits, so its share is rounded to a multiple of 1 / LEVELS."""


class Dropout(nn.Dropout):
    """Sets a share `p` of its input to zero in training (Srivastava et al. 2014) and scales the rest by 1 / (1 - p).

    On a CPU, PyTorch draws a 32-bit number for each element, which takes a quarter of a training step of a small
    Transformer. This class draws 64-bit words for four elements each, in a sixth of the time. Its generator is seeded
    by one draw from PyTorch's, so `torch.manual_seed` repeats it. Other devices use PyTorch's dropout."""

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not self.training:
            return x
        dropped = round(self.p * LEVELS)
        ours = 0 < dropped < LEVELS and x.device.type == "cpu" and not self.inplace
        if not ours or torch.compiler.is_compiling():
            return F.dropout(x, self.p, True, self.inplace)
        return x * _random_mask(x, dropped).mul_(LEVELS / (LEVELS - dropped))


class StochasticDepth(nn.Dropout):
    """Drops the output of a residual branch for a share `p` of the examples in training (Huang et al. 2016) and scales
    the rest by 1 / (1 - p)."""

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        if not self.training or not self.p:
            return x
        return x * F.dropout(x.new_ones(len(x), *[1] * (x.ndim - 1)), self.p)


def depth_rates(last: float, count: int) -> list[float]:
    """The shares of `count` branches for `StochasticDepth`, from 0 for the first one to `last`."""
    return [last * number / max(1, count - 1) for number in range(count)]


def _random_mask(x: Tensor, dropped: int) -> Tensor:
    """A random mask of the shape and type of `x`: 0 with the probability `dropped` / LEVELS, else 1."""
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    numbers = torch.from_numpy(words.view(np.int16)[: x.numel()]).view(x.shape)
    least = dropped - LEVELS // 2
    # Not by a comparison: products with booleans are slow.
    return numbers.clamp_(least - 1, least).sub_(least - 1).to(x.dtype)
