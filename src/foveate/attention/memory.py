"""The keys and values that queries look into: an encoded source, or a cache that grows token by token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.scores import Score


class Memory:
    """Keys, prepared once by the score, and their values. The leading dimension is the batch (or the beams).

    `keys` (..., S, P) and `values` (..., S, V) are views: do not write into them.
    """

    def __init__(self, k: Float[Tensor, "... S D"], v: Float[Tensor, "... S V"], score: Score) -> None:
        _check(k, v)
        self.score = score
        self._keys, self._values = score.keys(k), v
        self.length = k.shape[-2]
        self._added = 0

    @property
    def keys(self) -> Float[Tensor, "... S P"]:
        return self._keys[..., : self.length, :]

    @property
    def values(self) -> Float[Tensor, "... S V"]:
        return self._values[..., : self.length, :]

    def append(self, k: Float[Tensor, "... S D"], v: Float[Tensor, "... S V"]) -> None:
        """Add keys and values behind those that are there."""
        _check(k, v)
        self._keys = _grown(self._keys, self.score.keys(k), self.length)
        self._values = _grown(self._values, v, self.length)
        self._added = k.shape[-2]
        self.length += self._added

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Keep these rows of the batch, in this order; beam search names a row often or never."""
        self._keys = _chosen(self._keys, rows, self.length, self._added)
        self._values = _chosen(self._values, rows, self.length, self._added)

    def crop(self, length: int) -> None:
        """Forget all but the first `length` keys."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot crop a memory of {self.length} keys to {length}")
        # Cut off, not only hidden: a later `append` must not write where a caller or a recording may still look.
        self._keys, self._values = self._keys[..., :length, :], self._values[..., :length, :]
        self.length = length


def _check(k: Tensor, v: Tensor) -> None:
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{k.shape[-2]} keys {tuple(k.shape)} but {v.shape[-2]} values {tuple(v.shape)}: each key needs a value"
        )


def _grown(store: Tensor, new: Tensor, length: int) -> Tensor:
    """A store whose rows from `length` on begin with `new`; where no gradients are kept, with room for later ones."""
    total = length + new.shape[-2]
    if torch.is_grad_enabled():
        return torch.cat([store[..., :length, :], new], -2)
    if total > store.shape[-2]:
        roomy = store.new_empty(*store.shape[:-2], 2 * total, store.shape[-1])
        roomy[..., :length, :] = store[..., :length, :]
        store = roomy
    store[..., length:total, :] = new
    return store


def _chosen(store: Tensor, rows: Tensor, length: int, room: int) -> Tensor:
    """Some rows of a store. Where no gradients are kept, with just the room for what the next step adds: the less lies
    between the keys that are in use, the faster they are read."""
    if torch.is_grad_enabled():
        return store.index_select(0, rows)
    chosen = store.new_empty(len(rows), *store.shape[1:-2], length + room, store.shape[-1])
    torch.index_select(store[..., :length, :], 0, rows, out=chosen[..., :length, :])
    return chosen
