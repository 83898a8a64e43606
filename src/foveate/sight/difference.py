"""The difference of two maps of one site: of two inputs, or of two models."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.sight.derived import DerivedSite
from foveate.sight.measured_look import DIFFERENCE
from foveate.sight.measures import ALL, Choice, Top, resolve_choice
from foveate.sight.site import Site

Pairs = Sequence[tuple[int | None, int | None]]
"""Places of the first and of the second input that stand for each other; None where only one input has the place."""


class DifferenceSite(DerivedSite):
    """The weights of the second site less those of the first, (B, H, T, S): below 0 where the first looks more.

    A query that only one has is left out. A key that only one has counts as without weight in the other.
    """

    shows = DIFFERENCE

    def __init__(self, first: Site, second: Site, queries: Pairs, keys: Pairs) -> None:
        super().__init__(first.name, first)
        self._second = second
        both = [(one, other) for one, other in queries if one is not None and other is not None]
        self._queries, self._keys = ([one for one, _ in both], [other for _, other in both]), keys

    @property
    def has_sinks(self) -> bool:
        return False

    @property
    def count(self) -> int:
        return len(self._queries[0])

    @property
    def shape(self) -> tuple[int, int, int, int]:
        examples, heads, *_ = self._site.shape
        return examples, heads, self.count, len(self._keys)

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        rows = resolve_choice(queries, self.count)
        along = [self._keys[key] for key in resolve_choice(keys, len(self._keys))]
        found = []
        for number, site in enumerate((self._site, self._second)):
            whole = site.weights(heads, [self._queries[number][row] for row in rows])
            padded = torch.cat([whole, whole.new_zeros(*whole.shape[:-1], 1)], -1)
            chosen = (pair[number] for pair in along)
            found.append(padded[..., [-1 if place is None else place for place in chosen]])
        return found[1] - found[0].to(found[1].device)

    def top(self, k: int = 8) -> Top:
        """The k keys with the largest differences, in either direction."""
        count = min(k, self.shape[3])
        keys = torch.cat([block.abs().topk(count, -1).indices for block in self._blocks()], 2)
        weights, first = [], 0
        for block in self._blocks():
            weights.append(block.gather(-1, keys[:, :, first : first + block.shape[-2]]))
            first += block.shape[-2]
        return Top(torch.cat(weights, 2), keys)

    def entropy(self) -> Float[Tensor, "B H T"]:
        """That of the sizes of the differences, divided by their sum."""
        found = []
        for block in self._blocks():
            shares = block.abs() / block.abs().sum(-1, keepdim=True).clamp_min(torch.finfo(block.dtype).tiny)
            found.append(-torch.special.xlogy(shares, shares).sum(-1))
        return torch.cat(found, -1)
