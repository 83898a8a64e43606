"""Rollout through each stack of self-attention layers, in the form of a site, so that a page shows it as a map."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.sight.key_measures import cell_indices
from foveate.sight.measured_look import OF_WEIGHTS
from foveate.sight.measures import ALL, Choice, Top, resolve_choice
from foveate.sight.sight import Sight
from foveate.viewer.stacks import is_whole, stacks

LONGEST = 512
"""Maximum number of positions: a rollout is kept whole, and computing it reads every layer once more."""


class RolloutSite:
    """`Sight.rollout` of one stack (Abnar and Zuidema 2020) as a site with a single head."""

    windows = None
    has_sinks = False

    def __init__(self, sight: Sight, stack: str, layers: Sequence[str]) -> None:
        self.name, self.layers = f"rollout of {stack}", layers
        self.shows = sight[layers[0]].shows
        self._sight, self._stack = sight, stack
        self._kept: Float[Tensor, "B 1 T S"] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        examples, _, queries, keys = self._sight[self.layers[0]].shape
        return examples, 1, queries, keys

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B _ T S"]:
        """Computes how much each input position contributes to each output of the last layer; rows sum to 1."""
        if self._kept is None:
            self._kept = self._sight.rollout(self._stack)[:, None]
        chosen = zip((heads, queries, keys), self.shape[1:], strict=True)
        over, down, along = (torch.tensor(resolve_choice(choice, count)) for choice, count in chosen)
        return self._kept[:, over][:, :, down][..., along]

    def measure(self, *names: str, top: int) -> None:
        """Nothing to prepare: the whole map is kept."""

    def top(self, k: int) -> Top:
        """The k keys with the largest shares, as `Site.top` gives them."""
        weights, keys = self.weights().topk(k, -1)
        return Top(weights, torch.where(weights > 0, keys, -1))

    def entropy(self) -> Float[Tensor, "B 1 T"]:
        """That of the shares divided by their sum: through parts of maps they sum to less than 1."""
        weights = self.weights()
        weights = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        return -torch.xlogy(weights, weights).sum(-1)

    def pooled(self, rows: int, columns: int) -> Float[Tensor, "B 1 R C"]:
        weights = self.weights()
        for dim, parts in ((-2, rows), (-1, columns)):
            count = weights.shape[dim]
            cells = cell_indices(count, min(parts, count), weights.device)
            shape = list(weights.shape)
            shape[dim] = min(parts, count)
            weights = weights.new_zeros(shape).index_add_(dim, cells, weights)
        _, _, queries, _ = self.shape
        sizes = cell_indices(queries, min(rows, queries), weights.device).bincount()
        return weights / sizes[:, None]


def rollouts(sight: Any) -> dict[str, RolloutSite]:
    """The rollout of each stack that a sight has whole, by name; nothing is computed yet.

    There is none for stacks with more than `LONGEST` positions, of layers that differ in size, and for what only
    resembles a `Sight`.
    """
    if not isinstance(sight, Sight):
        return {}
    made = [
        RolloutSite(sight, stack, names) for stack, names in stacks(sight.sites).items() if _fits(sight, stack, names)
    ]
    return {each.name: each for each in made}


def _fits(sight: Sight, stack: str, names: list[str]) -> bool:
    shapes = {(sight[name].shape[0], *sight[name].shape[2:]) for name in names}
    (_, queries, keys), *others = shapes
    alike = not others and all(sight[name].shows in OF_WEIGHTS for name in names)
    alike = alike and queries == keys <= LONGEST
    return alike and is_whole(names) and [name for name in sight.sites if fnmatchcase(name, stack)] == names
