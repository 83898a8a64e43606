"""Low-rank updates of linear layers, to adapt a large model by few trained weights (LoRA, Hu et al. 2022,
https://arxiv.org/abs/2106.09685).

I  width of a layer's input    O  width of its output    R  rank of its update
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import UserError, at_least, unknown

SCALE = 2.0
"""What an update is multiplied by: alpha / rank in the paper."""


class LowRank(nn.Module):
    """A linear layer whose weights stay as they are, plus an update of low rank: `W x + scale * up (down x)`.

    `up` begins with zeros, so that the layer begins as it was.
    """

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(layer.weight.new_empty(rank, layer.in_features))
        self.up = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.updated = True

    def forward(self, x: Float[Tensor, "... I"]) -> Float[Tensor, "... O"]:
        if not self.updated:
            return self.layer(x)
        return self.layer(x) + SCALE * F.linear(F.linear(x, self.down), self.up)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The layer with the update inside its weights."""
        self.layer.weight += SCALE * (self.up @ self.down)
        return self.layer


def add_low_rank(model: nn.Module, rank: int, layers: Iterable[str]) -> list[str]:
    """Freeze the model, and give each linear layer whose path ends with one of `layers` an update of this rank.

    Returns the paths of these layers. Raises UserError for an end that no linear layer has, and for a layer that
    shares its weights with another, which the update would change too.
    """
    at_least(1, "the rank of low-rank updates", rank)
    linear = {path: part for path, part in model.named_modules() if type(part) is nn.Linear}
    chosen: list[str] = []
    for end in layers:
        found = [path for path in linear if f".{_plain(path)}".endswith(f".{end}") or f".{path}".endswith(f".{end}")]
        if not found and not linear:
            raise UserError("the trained weights have no linear layers, which low-rank updates are for: train them all")
        if not found:
            raise unknown("linear layer for low-rank updates", end, _ends(linear))
        chosen += [path for path in found if path not in chosen]
    holders = [id(weight) for _, weight in model.named_parameters(remove_duplicate=False)]
    for path in chosen:
        if holders.count(id(linear[path].weight)) > 1:
            raise UserError(f"{path} shares its weights with another layer: no low-rank update can be merged into it")
    model.requires_grad_(False)
    for path in chosen:
        _put(model, path, LowRank(linear[path], rank))
    return chosen


def merge_low_rank(model: nn.Module) -> None:
    """Put all updates into the weights of their layers, so that the model has the layers it had before."""
    for path, part in list(model.named_modules()):
        if isinstance(part, LowRank):
            _put(model, path, part.merged())


@contextmanager
def without_low_rank(model: nn.Module) -> Iterator[None]:
    """Inside, the model is what it was before its updates, in the same memory."""
    layers = [part for part in model.modules() if isinstance(part, LowRank)]
    try:
        for layer in layers:
            layer.updated = False
        yield
    finally:
        for layer in layers:
            layer.updated = True


def low_rank_updates(model: nn.Module) -> dict[str, Tensor]:
    """The two factors of each update, as "path.down" and "path.up"."""
    return {
        f"{path}.{side}": getattr(part, side).detach()
        for path, part in model.named_modules()
        if isinstance(part, LowRank)
        for side in ("down", "up")
    }


def _plain(path: str) -> str:
    """A path as that of attention without windows, whose projections are in no layer of their own."""
    return path.replace("self.attention.", "self.")


def _put(model: nn.Module, path: str, part: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, part)


def _ends(paths: Iterable[str]) -> set[str]:
    """The last two names of each path, so that layers of all blocks are one."""
    return {".".join(path.split(".")[-2:]) for path in paths}
