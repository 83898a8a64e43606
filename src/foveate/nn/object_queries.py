"""What the decoder of a detector starts from: one vector, and perhaps one box, for each object that it may find."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.contracts import IGNORE
from foveate.nn.image_positions import coordinate_waves


class LearnedQueries(nn.Module):
    """Queries that start from zeros, with a learned position each (Carion et al. 2020)."""

    def __init__(self, queries: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(queries, width))
        nn.init.normal_(self.table)

    def forward(
        self, rows: int, boxes: Tensor | None, labels: Tensor | None, first: Tensor | None
    ) -> tuple[Tensor, Tensor | None, None]:
        """Vectors (B, Q, C); no boxes and no mask."""
        return torch.zeros_like(self.table).expand(rows, -1, -1), None, None

    def positions(self, anchors: Tensor | None) -> Float[Tensor, "Q C"]:
        return self.table


class BoxQueries(nn.Module):
    """Queries that start from a box each, a learned one or one that is given; waves of the box are the query's position
    (Liu et al. 2022).

    In training more of them may start from boxes of the image's objects with noise (Li et al. 2022,
    https://arxiv.org/abs/2203.01305).
    """

    def __init__(self, queries: int, width: int, classes: int | None, learned: bool = True) -> None:
        """With `classes`, an embedding of each: the vector of a query that starts from a noisy box. Without `learned`
        boxes, `forward` is given those to start from."""
        super().__init__()
        self.boxes = nn.Parameter(torch.empty(queries, 4)) if learned else None
        self.contents = nn.Parameter(torch.empty(queries, width))
        self.labels = None if classes is None else nn.Embedding(classes, width)
        self.project = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))
        if self.boxes is not None:
            nn.init.uniform_(self.boxes[:, :2], -2, 2)
            nn.init.constant_(self.boxes[:, 2:], -1)
        nn.init.normal_(self.contents, std=0.02)

    def forward(
        self,
        rows: int,
        boxes: Float[Tensor, "B G K 4"] | None,
        labels: Int[Tensor, "B G K"] | None,
        first: Float[Tensor, "B Q 4"] | None,
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, "B T 4"], Bool[Tensor, "B 1 T T"] | None]:
        """Vectors, boxes before the sigmoid, and who sees whom: the queries, and after them those of noisy boxes.

        `first` are the boxes that the queries start from where none are learned, before the sigmoid.
        """
        anchors = first if self.boxes is None else self.boxes.expand(rows, -1, -1)
        assert anchors is not None
        x = self.contents[: anchors.shape[1]].expand(rows, -1, -1)
        if boxes is None or labels is None or self.labels is None:
            return x, anchors, None
        noisy = self.labels(labels.clamp_min(0)).flatten(1, 2)
        x, anchors = torch.cat([x, noisy], 1), torch.cat([anchors, boxes.flatten(1, 2).logit(1e-3)], 1)
        return x, anchors, denoising_mask(x.shape[1] - noisy.shape[1], labels)

    def positions(self, anchors: Float[Tensor, "B T 4"]) -> Float[Tensor, "B T C"]:
        centre_first = anchors.sigmoid()[..., [1, 0, 3, 2]]  # rows before columns, as in the positions of the grid
        waves = coordinate_waves(centre_first, self.contents.shape[1] // 2)
        return self.project(waves.flatten(-2))


class Proposals(nn.Module):
    """Each place of a feature map proposes a box around it and a class for it; the surest ones are what queries start
    from (Zhu et al. 2021, https://arxiv.org/abs/2010.04159, section 4.2)."""

    def __init__(self, width: int, output: nn.Linear, box: nn.Sequential) -> None:
        """`output` gives the logits of a place, `box` the correction of the box around it."""
        super().__init__()
        self.norm, self.output, self.box = nn.LayerNorm(width), output, box
        self.size = nn.Parameter(torch.full((2,), -1.0))

    def forward(
        self, encoded: Float[Tensor, "B S C"], inside: Bool[Tensor, "B h w"]
    ) -> tuple[Float[Tensor, "B S N"], Float[Tensor, "B S 4"]]:
        """The logits of all places, and their boxes before the sigmoid. Nothing is proposed outside of the image."""
        x, outside = self.norm(encoded), ~inside.flatten(1)[..., None]
        centres = []
        for axis in (2, 1):
            counts = inside.to(x.dtype).cumsum(axis)
            centres.append(((counts - 0.5) / inside.sum(axis, keepdim=True).clamp_min(1)).clamp(0, 1).flatten(1))
        around = torch.stack(centres, -1).logit(1e-3)
        boxes = torch.cat([around, self.size.expand_as(around)], -1) + self.box(x)
        return self.output(x).masked_fill(outside, NOTHING), boxes


def surest_boxes(logits: Float[Tensor, "B S N"], boxes: Float[Tensor, "B S 4"], queries: int) -> Float[Tensor, "B Q 4"]:
    """The boxes of the places that are surest of their class, without gradients."""
    chosen = logits.amax(-1).topk(min(queries, logits.shape[1]), 1).indices
    return boxes.detach().gather(1, chosen[..., None].expand(-1, -1, 4))


NOTHING = -30.0
"""The logits of places outside of the image."""


def denoising_mask(queries: int, labels: Int[Tensor, "B G K"]) -> Bool[Tensor, "B 1 T T"]:
    """Queries see each other and no noisy box; those of a group of noisy boxes see each other, and queries."""
    _, groups, objects = labels.shape
    numbers = torch.arange(groups, device=labels.device).repeat_interleave(objects) + 1
    numbers = torch.cat([numbers.new_zeros(queries), numbers])
    sees = (numbers[:, None] == numbers) | (numbers == 0)
    real = torch.cat([labels.new_ones(len(labels), queries, dtype=torch.bool), labels.flatten(1) != IGNORE], 1)
    return (sees & real[:, None])[:, None]
