"""Each place of feature maps proposes a box for what queries of a decoder then look for (Zhu et al. 2021,
https://arxiv.org/abs/2010.04159, section 4.2)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.nn.detection_layers import box_layers, class_logits
from foveate.nn.feature_maps import FeatureMaps

SMALLEST = 0.05
"""Width and height of the boxes of the finest map, as shares of the image; those of each further map are twice as
large."""

MARGIN = 0.01
"""Boxes with a centre or a size closer than this to 0 or 1 are not proposed."""


class PlaceProposals(nn.Module):
    """Corrects a box around each place, and decides its class."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.project, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.output = class_logits(width, classes, no_object=False)
        self.box = box_layers(width, corrects=True)

    def forward(
        self, source: Float[Tensor, "B S C"], maps: FeatureMaps
    ) -> tuple[Float[Tensor, "B S C"], Float[Tensor, "B S N"], Float[Tensor, "B S 4"]]:
        """The vector, the logits and the box of each place; boxes as shares of the image."""
        sizes = [SMALLEST * 2**level for level, grid in enumerate(maps.grids) for _ in range(grid[0] * grid[1])]
        centres = maps.centres
        boxes = torch.cat([centres, centres.new_tensor(sizes)[:, None].expand_as(centres)], -1)
        proposed = self._proposed(boxes) & maps.inside[..., None]
        vectors = self.norm(self.project(source.masked_fill(~proposed, 0)))
        known = boxes.logit(1e-6).masked_fill(~proposed, torch.inf)
        return vectors, self.output(vectors), (self.box(vectors) + known).sigmoid()

    def _proposed(self, boxes: Float[Tensor, "B S 4"]) -> Bool[Tensor, "B S 1"]:
        return ((boxes > MARGIN) & (boxes < 1 - MARGIN)).all(-1, keepdim=True)


def surest_places(sure: Float[Tensor, "B S"], queries: int) -> Int[Tensor, "B Q"]:
    """The numbers of the places that are surest to have an object."""
    return sure.topk(min(queries, sure.shape[1]), 1).indices


def pick_places(values: Float[Tensor, "B S D"], places: Int[Tensor, "B Q"]) -> Float[Tensor, "B Q D"]:
    """What is at these places."""
    return values.gather(1, places[..., None].expand(-1, -1, values.shape[-1]))
