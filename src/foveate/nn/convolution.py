"""Convolutions over the positions of a sequence."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class GatedConvolution(nn.Module):
    """A convolution to twice the width, one half of which gates the other (Dauphin et al. 2017): C -> 2 C -> C.

    Nothing is padded here: the input has `kernel - 1` vectors more than the output, before it or around it, as the
    caller likes. So one module reads a whole sequence and a single step with its past.
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        # As a matrix product with windows of the input: one path for a whole sequence and for a step.
        self.linear = nn.Linear(kernel * width, 2 * width)

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B T C"]:
        length = x.shape[1] - self.kernel + 1
        windows = torch.cat([x[:, start : start + length] for start in range(self.kernel)], -1)
        return F.glu(self.linear(windows), -1)
