"""Positions by a convolution: what is added to a place depends on its neighbours (Mohamed et al. 2019,
https://arxiv.org/abs/1904.11660), with weight norm (Salimans and Kingma 2016, https://arxiv.org/abs/1602.07868)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import UserError


class ConvolvedPositions(nn.Module):
    """A grouped convolution over the places of a sequence and an activation: what is added to each place.

    The weights of each place of the window, (C, C / groups), are `direction` with the length `gain`.
    """

    def __init__(self, width: int, kernel: int, groups: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        if width % groups:
            raise UserError(f"width {width} is not divisible by position_groups {groups}")
        self.groups, self.kernel, self.activation = groups, kernel, activation
        self.direction, self.bias = (
            nn.Parameter(torch.empty(width, width // groups, kernel)),
            nn.Parameter(torch.zeros(width)),
        )
        nn.init.normal_(self.direction, std=2 / (kernel * width) ** 0.5)
        self.gain = nn.Parameter(self._length(self.direction.detach()))

    def forward(self, x: Float[Tensor, "B Z C"]) -> Float[Tensor, "B Z C"]:
        weight = self.direction * (self.gain / self._length(self.direction))
        y = F.conv1d(x.mT, weight, self.bias, padding=self.kernel // 2, groups=self.groups)
        return self.activation(y[..., : x.shape[1]]).mT

    @staticmethod
    def _length(direction: Float[Tensor, "C D K"]) -> Float[Tensor, "1 1 K"]:
        return torch.linalg.vector_norm(direction, dim=(0, 1), keepdim=True)
