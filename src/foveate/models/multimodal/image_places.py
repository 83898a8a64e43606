"""The places of an image as a sequence to attend to."""

from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import sinusoidal_grid
from foveate.models.vision.image_encoder import Backbone, image_encoder

Positions = Literal["none", "sinusoidal"]


class ImagePlaces(nn.Module):
    """The feature map of an image encoder, place by place, row by row.

    With sinusoidal positions, each place also has the waves of its row and column, and a layer joins both, so that even
    the mean of all places tells what is where.
    """

    encoder: Any
    """A `foveate.contracts.GridEncoder`."""

    def __init__(self, encoder: Backbone, channels: int, image_size: int, positions: Positions) -> None:
        """`encoder` is the name of a vision preset, or a body."""
        super().__init__()
        self.encoder = image_encoder(encoder, channels, image_size)
        self.width = self.encoder.grid_width
        self.join = nn.Linear(2 * self.width, self.width) if positions == "sinusoidal" else None

    def forward(
        self, pixels: Float[Tensor, "I c h w"], images: Int[Tensor, "B"] | None = None
    ) -> Float[Tensor, "B S C"]:
        """The places of all images, or of those whose rows are given, which may be the same ones."""
        places = self._all(pixels)
        return places if images is None else places[images]

    def _all(self, pixels: Float[Tensor, "I c h w"]) -> Float[Tensor, "I S C"]:
        grid = self.encoder.grid(pixels)
        rows, columns = grid.shape[2:]
        places = grid.flatten(2).mT
        if self.join is None:
            return places
        waves = sinusoidal_grid(rows, columns, self.width, device=grid.device).to(grid.dtype)
        return torch.relu(self.join(torch.cat([places, waves.expand(len(places), -1, -1)], -1)))
