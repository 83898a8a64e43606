"""Local attention of a recurrent decoder to a part of the source (Luong et al. 2015, section 3.2).

A window gives a mask and a bias for the queries of some steps; `attend` needs no change.
"""

from abc import abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Bias, Gaussian, Mask, around
from foveate.attention.autocast import without_autocast


class PlacedWindow(NamedTuple):
    """The keys that the queries of some steps may look at."""

    mask: Mask
    bias: Bias | None
    """What is added to the scores inside of the mask."""
    centre: Float[Tensor, "R"]
    """The centre of the last query."""


class LocalWindow(nn.Module):
    """The keys at most `radius` positions away from a centre, which differs between steps."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    @abstractmethod
    def centres(
        self,
        queries: Float[Tensor, "R T C"],
        start: int,
        lengths: Int[Tensor, "R"],
        before: Float[Tensor, "R"] | None = None,
    ) -> Float[Tensor, "R T"]:
        """The centre of each query, 0 to length - 1. The first query is that of step `start`, and `before` is the
        centre of the query before it (None: there is none)."""

    def forward(
        self,
        queries: Float[Tensor, "R T C"],
        start: int,
        lengths: Int[Tensor, "R"],
        before: Float[Tensor, "R"] | None = None,
    ) -> PlacedWindow:
        """The window of each query; see `centres`."""
        centres = self.centres(queries, start, lengths, before)
        return PlacedWindow(around(centres, self.radius), None, centres[:, -1])


class GaussianWindow(LocalWindow):
    """A window whose centre has a gradient: a Gaussian around it, with a deviation of half the radius, is added to the
    scores."""

    def forward(
        self,
        queries: Float[Tensor, "R T C"],
        start: int,
        lengths: Int[Tensor, "R"],
        before: Float[Tensor, "R"] | None = None,
    ) -> PlacedWindow:
        centres = self.centres(queries, start, lengths, before)
        return PlacedWindow(around(centres.detach(), self.radius), Gaussian(centres, self.radius / 2), centres[:, -1])


class DiagonalWindow(LocalWindow):
    """The centre of step t is position t ("local-m"), or the last position of a shorter source."""

    def centres(
        self,
        queries: Float[Tensor, "R T C"],
        start: int,
        lengths: Int[Tensor, "R"],
        before: Float[Tensor, "R"] | None = None,
    ) -> Float[Tensor, "R T"]:
        steps = torch.arange(start, start + queries.shape[1], device=queries.device)
        return torch.minimum(steps, lengths[:, None] - 1).float()


class PredictedWindow(GaussianWindow):
    """The centre is predicted from the query ("local-p"): `(S - 1) sigmoid(v·tanh(W q))`.

    Only the Gaussian has a gradient for the centre.
    """

    def __init__(self, width: int, radius: int) -> None:
        super().__init__(radius)
        self.place = _number_of(width)

    def centres(
        self,
        queries: Float[Tensor, "R T C"],
        start: int,
        lengths: Int[Tensor, "R"],
        before: Float[Tensor, "R"] | None = None,
    ) -> Float[Tensor, "R T"]:
        return (lengths[:, None] - 1) * _exact(self.place, queries).sigmoid()


class AdvancingWindow(GaussianWindow):
    """The centre moves from left to right, at each step by a distance that is predicted from the query:
    `softplus(v·tanh(W q) + b)` (Tjandra et al. 2017, https://arxiv.org/abs/1705.08091, who take an exponential).

    It stays at the end of the source. What is predicted does not depend on the length of the source, so a model can
    read sources that are longer than those in training.
    """

    def __init__(self, width: int, radius: int) -> None:
        super().__init__(radius)
        self.advance = _number_of(width, bias=True)

    def centres(
        self,
        queries: Float[Tensor, "R T C"],
        start: int,
        lengths: Int[Tensor, "R"],
        before: Float[Tensor, "R"] | None = None,
    ) -> Float[Tensor, "R T"]:
        steps = F.softplus(_exact(self.advance, queries))
        first = torch.zeros_like(steps[:, 0]) if before is None else before
        return torch.minimum(first[:, None] + steps.cumsum(1), (lengths[:, None] - 1).to(steps))


def _number_of(width: int, bias: bool = False) -> nn.Sequential:
    """Predicts one number from a query."""
    return nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh(), nn.Linear(width, 1, bias=bias))


def _exact(layer: nn.Module, queries: Float[Tensor, "R T C"]) -> Float[Tensor, "R T"]:
    """A layer's number for each query, in single precision at least: half cannot represent positions of a long
    source."""
    exact = torch.promote_types(queries.dtype, torch.float32)
    with without_autocast(queries.device):
        return layer(queries.to(next(layer.parameters()).dtype)).squeeze(-1).to(exact)
