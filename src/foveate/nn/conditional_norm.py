"""Batch norm whose scale and shift depend on a class."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class ConditionalBatchNorm(nn.Module):
    """Batch norm with a learned scale and shift for each class (Dumoulin et al. 2017, https://arxiv.org/abs/1610.07629)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(width, affine=False)
        self.scale = nn.Parameter(torch.ones(classes, width))
        self.shift = nn.Parameter(torch.zeros(classes, width))

    def forward(self, x: Float[Tensor, "B C h w"], labels: Int[Tensor, "B"]) -> Float[Tensor, "B C h w"]:
        return self.scale[labels][..., None, None] * self.norm(x) + self.shift[labels][..., None, None]
