"""Feature maps of several sizes as one sequence of places.

B batch    L maps    S places, map by map and row by row    C width
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.nn.image_positions import inside_images


@dataclass(frozen=True)
class FeatureMaps:
    """Maps of one image, from the finest to the coarsest, and which of their places are padding."""

    maps: tuple[Float[Tensor, "B C _ _"], ...]
    masks: tuple[Bool[Tensor, "B _ _"], ...]
    """False for padding at the right and the bottom."""

    @classmethod
    def of(
        cls,
        maps: Sequence[Float[Tensor, "B C _ _"]],
        pixels: Float[Tensor, "B c h w"],
        sizes: Int[Tensor, "B 2"] | None,
    ) -> "FeatureMaps":
        """The maps of images whose height and width are `sizes`, where they are padded."""
        return cls(tuple(maps), tuple(inside_images(pixels, one, sizes) for one in maps))

    @cached_property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each map."""
        return tuple((one.shape[2], one.shape[3]) for one in self.maps)

    @cached_property
    def places(self) -> Float[Tensor, "B S C"]:
        """The vector of each place."""
        return torch.cat([one.flatten(2).mT for one in self.maps], 1)

    @cached_property
    def inside(self) -> Bool[Tensor, "B S"]:
        """Whether a place is no padding."""
        return torch.cat([mask.flatten(1) for mask in self.masks], 1)

    @cached_property
    def shares(self) -> Float[Tensor, "B L 2"]:
        """The parts of each map's width and height that are not padding."""
        return torch.stack([_counts(mask).to(self.dtype) / _size(mask, self.dtype) for mask in self.masks], 1)

    @cached_property
    def centres(self) -> Float[Tensor, "B S 2"]:
        """x and y of each place, as shares of the image."""
        found = []
        for mask in self.masks:
            rows, columns = (torch.arange(count, device=mask.device).to(self.dtype) + 0.5 for count in mask.shape[1:])
            down, across = torch.meshgrid(rows, columns, indexing="ij")
            found.append(torch.stack([across, down], -1).flatten(0, 1) / _counts(mask).to(self.dtype)[:, None])
        return torch.cat(found, 1)

    @property
    def dtype(self) -> torch.dtype:
        return self.maps[0].dtype

    def around(self, boxes: Float[Tensor, "B T D"]) -> Float[Tensor, "B T L D"]:
        """Points or boxes that are shares of the image as shares of each map with its padding."""
        shares = torch.cat([self.shares] * (boxes.shape[-1] // 2), -1)
        return boxes[:, :, None] * shares[:, None]


def _counts(mask: Bool[Tensor, "B h w"]) -> Int[Tensor, "B 2"]:
    """How many columns and rows are inside."""
    return torch.stack([mask[:, 0].sum(1), mask[:, :, 0].sum(1)], -1)


def _size(mask: Bool[Tensor, "B h w"], dtype: torch.dtype) -> Float[Tensor, "2"]:
    return torch.tensor(mask.shape[:0:-1], dtype=dtype, device=mask.device)
