"""Attention to points of several feature maps as one map over the image."""

from jaxtyping import Float
from torch import Tensor

from foveate.attention.points import finest, on_finest_grid
from foveate.errors import UserError
from foveate.sight.derived import DerivedSite
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.points import SamplingPoints
from foveate.sight.site import Site


class SummedPoints(DerivedSite):
    """A site of points whose keys are the places of the finest feature map, row by row, (B, H, T, S).

    The weight of a place of a coarser map is divided among the places that it covers. Points outside of the image
    weigh nothing here, so that rows may sum to less than 1.
    """

    def __init__(self, site: Site) -> None:
        """Raises UserError for a site that looks at no points."""
        super().__init__(site.name, site)
        if site.grids is None:
            raise UserError(f"{site.name} looks at no points of feature maps, which could be summed")
        self.summed, self._grids = site, site.grids

    @property
    def shape(self) -> tuple[int, int, int, int]:
        rows, columns = finest(self._grids)
        return (*self.summed.shape[:3], rows * columns)

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        rows = on_finest_grid(self.summed.weights(heads, queries), self._grids)
        return rows[..., list(resolve_choice(keys, self.shape[3]))]

    @property
    def has_points(self) -> bool:
        return self.summed.has_points

    def points(self, heads: Choice = ALL, queries: Choice = ALL) -> SamplingPoints:
        return self.summed.points(heads, queries)
