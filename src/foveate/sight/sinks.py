"""Maps without sinks: keys that most queries look at because they have to look somewhere.

Xiao et al. 2023 (https://arxiv.org/abs/2309.17453); the threshold is that of Gu et al. 2024
(https://arxiv.org/abs/2410.10781).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from foveate.attention.points import Grids
from foveate.sight.derived import DerivedSite
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.site import Site

SINK = 0.3
"""A key is a sink of a head if its mean weight, over all queries, is larger."""


def sinks(site: Site, above: float = SINK) -> Bool[Tensor, "B H S"]:
    """Which keys are sinks of each head. A map of a single key has none."""
    found = site.received() / site.shape[2] > above
    return found & (site.shape[3] > 1)


class WithoutSinks(DerivedSite):
    """The weights of a site on the keys that are no sinks, as shares of their sum, (B, H, T, S).

    A row that looks at nothing but sinks is 0.
    """

    shows = "without-sinks"

    def __init__(self, site: Site, above: float = SINK) -> None:
        super().__init__(site.name, site)
        self.windows, self.sinks = site.windows, sinks(site, above)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self._site.shape

    @property
    def grids(self) -> Grids | None:
        return self._site.grids

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        _, head_count, _, key_count = self.shape
        chosen = list(resolve_choice(heads, head_count)), list(resolve_choice(keys, key_count))
        rows = self._site.weights(chosen[0], queries).masked_fill(self.sinks[:, chosen[0], None], 0)
        total = rows.sum(-1, keepdim=True)
        floor = torch.finfo(rows.dtype).eps  # what is left of a row of sinks is rounding
        return (rows / total.masked_fill(total <= floor, torch.inf))[..., chosen[1]]
