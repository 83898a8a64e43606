"""One vector of a whole sequence: its mean, or what a query sees in it."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Biaffine, Dot, ScaledDot, Score, attend, padding

SCORES: dict[str, Callable[[int], Score]] = {
    "additive": lambda width: Additive(width, width, width),
    "dot": lambda width: Dot(),
    "scaled-dot": lambda width: ScaledDot(),
    "biaffine": lambda width: Biaffine(width, width),
}
"""What makes the score of queries and keys of one width, by its name."""


class AttentionPooling(nn.Module):
    """Attends to a sequence with one query: encode, attend, predict.

    Without a given query, a learned one is asked of every sequence: "which places matter to the task?". With the
    additive score that is the word attention of Yang et al. 2016 (Hierarchical Attention Networks, section 2.2).
    """

    def __init__(self, width: int, score: Score, learned: bool = True) -> None:
        super().__init__()
        self.score = score
        self.query = nn.Parameter(torch.randn(width) * width**-0.5) if learned else None

    def forward(
        self, encoded: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"], query: Float[Tensor, "B D"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The mean of the places of each sequence, weighted by how its query, learned or given, scores them."""
        if self.query is not None and query is None:
            query = self.query.expand(len(encoded), -1)
        elif self.query is not None or query is None:
            raise ValueError("a pooling with a learned query is given none; one without needs a query for each row")
        return attend(query[:, None], encoded, encoded, self.score, mask=padding(lengths)).squeeze(1)


class MeanPooling(nn.Module):
    """The plain mean of the places that are no padding."""

    def forward(self, encoded: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        real = torch.arange(encoded.shape[1], device=encoded.device) < lengths[:, None]
        return (encoded * real[..., None]).sum(1) / lengths[:, None]
