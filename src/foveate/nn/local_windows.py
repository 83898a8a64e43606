"""Local attention of a recurrent decoder to a part of the source (Luong et al. 2015, section 3.2).

A window gives a mask and a bias for the queries of some steps; `attend` needs no change.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Bias, Gaussian, Mask, around


class LocalWindow(nn.Module):
    """The keys at most `radius` positions away from a centre, which differs between steps."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    @abstractmethod
    def centres(self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]) -> Float[Tensor, "R T"]:
        """The centre of each query, 0 to length - 1. The first query is that of step `start`."""

    def forward(
        self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]
    ) -> tuple[Mask, Bias | None]:
        """The mask of the window, and a bias for the scores inside."""
        return around(self.centres(queries, start, lengths), self.radius), None


class DiagonalWindow(LocalWindow):
    """The centre of step t is position t ("local-m"), or the last position of a shorter source."""

    def centres(self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]) -> Float[Tensor, "R T"]:
        steps = torch.arange(start, start + queries.shape[1], device=queries.device)
        return torch.minimum(steps, lengths[:, None] - 1).float()


class PredictedWindow(LocalWindow):
    """The centre is predicted from the query, and a Gaussian around it is added ("local-p").

    The centre is `(S - 1) sigmoid(v·tanh(W q))`, the standard deviation half the radius. Only the Gaussian has a
    gradient for the centre.
    """

    def __init__(self, width: int, radius: int) -> None:
        super().__init__(radius)
        self.place = nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh(), nn.Linear(width, 1, bias=False))

    def centres(self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]) -> Float[Tensor, "R T"]:
        # Half precision cannot represent the positions of a long source.
        exact = torch.promote_types(queries.dtype, torch.float32)
        with torch.autocast(queries.device.type, enabled=False):
            share = self.place(queries.to(next(self.place.parameters()).dtype)).squeeze(-1).to(exact).sigmoid()
        return (lengths[:, None] - 1) * share

    def forward(
        self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]
    ) -> tuple[Mask, Bias | None]:
        centres = self.centres(queries, start, lengths)
        return around(centres.detach(), self.radius), Gaussian(centres, self.radius / 2)
