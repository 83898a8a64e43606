"""Which part of the source a recurrent decoder looks at, where that is not all of it (Luong et al. 2015, section 3.2).

A window tells, for the queries of some steps, a mask and a bias to add: attention itself stays what it is.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Bias, Gaussian, Mask, around


class LocalWindow(nn.Module):
    """The keys at most `radius` places away from a centre that moves from step to step."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    @abstractmethod
    def centres(self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]) -> Float[Tensor, "R T"]:
        """The place, 0 to length - 1, around which each query looks; the first of them is that of step `start`."""

    def forward(
        self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]
    ) -> tuple[Mask, Bias | None]:
        """What hides the keys outside of the window, and what is added to the scores of those inside."""
        return around(self.centres(queries, start, lengths), self.radius), None


class DiagonalWindow(LocalWindow):
    """Step t looks around place t ("local-m"); steps beyond the end of the source look around its last place."""

    def centres(self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]) -> Float[Tensor, "R T"]:
        steps = torch.arange(start, start + queries.shape[1], device=queries.device)
        return torch.minimum(steps, lengths[:, None] - 1).float()


class PredictedWindow(LocalWindow):
    """The query says where to look, as a share of the source, and a bell around that place is added ("local-p").

    The place is `(S - 1) sigmoid(v·tanh(W q))`, the bell's deviation half the radius. Only the bell has a gradient that
    moves the place.
    """

    def __init__(self, width: int, radius: int) -> None:
        super().__init__(radius)
        self.place = nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh(), nn.Linear(width, 1, bias=False))

    def centres(self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]) -> Float[Tensor, "R T"]:
        # In half precision the places of a long source could not be told apart.
        exact = torch.promote_types(queries.dtype, torch.float32)
        with torch.autocast(queries.device.type, enabled=False):
            share = self.place(queries.to(next(self.place.parameters()).dtype)).squeeze(-1).to(exact).sigmoid()
        return (lengths[:, None] - 1) * share

    def forward(
        self, queries: Float[Tensor, "R T C"], start: int, lengths: Int[Tensor, "R"]
    ) -> tuple[Mask, Bias | None]:
        centres = self.centres(queries, start, lengths)
        return around(centres.detach(), self.radius), Gaussian(centres, self.radius / 2)
