"""Which residues of a protein touch, read from the attention of a protein language model (Rao et al. 2021).

https://openreview.net/forum?id=fylclEqgvgd. A logistic regression of every head's map, made symmetric and without what
its rows and columns have on average (average product correction). Models of ESM bring its weights along.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.errors import UserError
from foveate.sight.from_weights import GivenMap
from foveate.sight.site import Site


def contact_map(
    sites: Sequence[Site], weight: Float[Tensor, "N"], bias: float, residues: Sequence[int]
) -> Float[Tensor, "B R R"]:
    """The probability that each two residues touch, one head's map at a time: memory is that of a few maps.

    `sites` are the layers, from the first to the last; `weight` has a number for each head of each layer; `residues`
    are the positions without the tokens at the ends. Raises UserError where there are more or fewer heads.
    """
    heads = sum(site.shape[1] for site in sites)
    if heads != len(weight):
        raise UserError(f"contacts are read from {len(weight)} heads, but {heads} were seen")
    total, number = torch.tensor(bias), 0
    for site in sites:
        for head in range(site.shape[1]):
            total = total + float(weight[number]) * corrected(site.weights([head], residues, residues)[:, 0])
            number += 1
    return total.sigmoid()


def corrected(weights: Float[Tensor, "B R R"]) -> Float[Tensor, "B R R"]:
    """A map plus its transpose, without the product of its row's and its column's sums over the sum of all."""
    both = weights + weights.mT
    rows, columns = both.sum(-1, keepdim=True), both.sum(-2, keepdim=True)
    return both - rows * columns / both.sum((-1, -2), keepdim=True)


class ContactSite(GivenMap):
    """The probabilities that residues touch, as a map with one head: its rows do not sum to 1."""

    def __init__(self, name: str, probabilities: Float[Tensor, "B R R"]) -> None:
        super().__init__(name, probabilities[:, None])
