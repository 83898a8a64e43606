"""Dropout whose random numbers do not cost more than the layer in front of it, and stochastic depth."""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

LEVELS = 2**16
"""A place is dropped by a number of 16 random bits, so the share that is dropped is a multiple of 1 / LEVELS."""


class Dropout(nn.Dropout):
    """Silences a share `p` of its input in training (Srivastava et al. 2014) and scales the rest by 1 / (1 - p).

    On a CPU PyTorch draws a 32-bit number for each place, one after the other: a quarter of a training step of a small
    Transformer. Here a generator of 64-bit words, seeded by one draw from PyTorch's own (so that
    `torch.manual_seed` repeats it), fills four places at once: a sixth of the time. Other devices use PyTorch's.
    """

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not self.training:
            return x
        dropped = round(self.p * LEVELS)
        ours = 0 < dropped < LEVELS and x.device.type == "cpu" and not self.inplace
        if not ours or torch.compiler.is_compiling():
            return F.dropout(x, self.p, True, self.inplace)
        return x * _kept(x, dropped).mul_(LEVELS / (LEVELS - dropped))


class StochasticDepth(nn.Dropout):
    """Drops what a residual branch gives for a share `p` of the examples in training (Huang et al. 2016), so that
    they skip the branch, and scales the rest by 1 / (1 - p)."""

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        if not self.training or not self.p:
            return x
        return x * F.dropout(x.new_ones(len(x), *[1] * (x.ndim - 1)), self.p)


def depth_rates(last: float, count: int) -> list[float]:
    """The share of each of `count` branches for `StochasticDepth`, from 0 for the first one to `last`."""
    return [last * number / max(1, count - 1) for number in range(count)]


def _kept(x: Tensor, dropped: int) -> Tensor:
    """1 where 16 random bits are at least the `dropped`-th smallest number, else 0; of the shape and type of `x`."""
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    numbers = torch.from_numpy(words.view(np.int16)[: x.numel()]).view(x.shape)
    least = dropped - LEVELS // 2
    # A comparison would give booleans, which multiply slowly.
    return numbers.clamp_(least - 1, least).sub_(least - 1).to(x.dtype)
