"""Maps of many short sequences as one map, in which a query sees only keys of its own sequence."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.errors import UserError
from foveate.sight.derived import DerivedSite
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.site import Site


class JoinedSequences(DerivedSite):
    """The examples of a site, which are parts of one input, as one map (1, H, T, T).

    A video model that attends within each frame has an example for each frame; one that attends along time has an
    example for each patch. `places` says for each position of the joined map which example and which position it is.
    """

    def __init__(self, name: str, site: Site, places: Sequence[tuple[int, int]]) -> None:
        super().__init__(name, site)
        self._examples, self._positions = (torch.tensor(side) for side in zip(*places, strict=True))

    @property
    def count(self) -> int:
        return len(self._examples)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return 1, self._site.shape[1], self.count, self.count

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "1 H T S"]:
        rows, columns = (torch.tensor(resolve_choice(choice, self.count)) for choice in (queries, keys))
        own, inverse = self._positions[rows].unique(return_inverse=True)
        seen, along = self._positions[columns].unique(return_inverse=True)
        found = self._site.weights(heads, own.tolist(), seen.tolist())
        over, other = self._examples[rows].to(found.device), self._examples[columns].to(found.device)
        picked = found[over, :, inverse.to(found.device)]  # (T, H, unique keys)
        picked = picked[..., along.to(found.device)].transpose(0, 1)
        return (picked * (over[:, None] == other)).unsqueeze(0)

    def distance(self) -> Float[Tensor, "B H T"]:
        """Raises UserError: positions of different sequences have no distance."""
        raise UserError(f"{self.name} joins sequences, whose positions have no common distance")
