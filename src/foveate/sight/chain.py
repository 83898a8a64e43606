"""Two maps in a row: from queries to keys, and from those to what they have read by attention themselves."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from foveate.errors import UserError
from foveate.sight.derived import DerivedSite
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.site import Site


class Chain(DerivedSite):
    """How far queries look through their keys: the weights of a site times those with which its keys were made.

    Words of BLIP-2 look at learned queries, each of which has looked at the patches of an image. The heads are those of
    `site`; of `behind` the mean of the heads counts. `columns` are those of its keys that are shown.
    """

    def __init__(self, name: str, site: Site, behind: Site, columns: Sequence[int]) -> None:
        """Raises UserError if `behind` does not have a query for each key of `site`."""
        super().__init__(name, site)
        if behind.shape[2] != site.shape[3]:
            raise UserError(f"{site.name} has {site.shape[3]} keys, but {behind.name} has {behind.shape[2]} queries")
        self._behind, self._columns = behind, columns

    @property
    def count(self) -> int:
        return self._site.shape[2]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        examples, heads, queries, _ = self._site.shape
        return examples, heads, queries, len(self._columns)

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        columns = [self._columns[place] for place in resolve_choice(keys, len(self._columns))]
        first = self._site.weights(heads, queries)
        return first @ self._behind.weights(keys=columns).mean(1, keepdim=True).to(first)

    def distance(self) -> Float[Tensor, "B H T"]:
        """Raises UserError: queries and what lies behind their keys have no distance."""
        raise UserError(f"{self.name} leads through the keys of a site to another, which have no common distance")
