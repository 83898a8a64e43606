"""Self-attention between the places of a feature map."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Dot, attend


class FeatureMapAttention(nn.Module):
    """Each place attends to all places of its feature map (SAGAN, Zhang et al. 2019, https://arxiv.org/abs/1805.08318).

    Queries, keys and values are 1x1 convolutions to an eighth of the width; another one projects the result back. It is
    multiplied by a learned `scale` and added to the input. The scale starts at 0, so that a network learns from
    neighbouring places first.
    """

    attends = True

    def __init__(self, width: int, inner: int | None = None) -> None:
        """`inner` is the width of queries, keys and values, an eighth of `width` unless given."""
        super().__init__()
        inner = max(1, width // 8) if inner is None else inner
        self.query, self.key, self.value = (nn.Conv2d(width, inner, 1, bias=False) for _ in range(3))
        self.output = nn.Conv2d(inner, width, 1, bias=False)
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        query, key, value = (_places(project(x)) for project in (self.query, self.key, self.value))
        found = attend(query, key, value, Dot()).squeeze(1).mT.unflatten(2, x.shape[2:])
        return x + self.scale * self.output(found)


def _places(x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B 1 T C"]:
    """The places of a feature map, row by row, as the sequence of one head."""
    return x.flatten(2).mT.unsqueeze(1)
