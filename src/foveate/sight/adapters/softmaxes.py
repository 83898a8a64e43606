"""Softmaxes that a model computes by itself: evidence of attention that cannot be seen.

A router or a classifier has a softmax, too. Attention weights are known by what becomes of them: they are multiplied
with something that is no parameter. Where something was added to them or divided off before, they may be anything, such
as the mixing of residual streams, and the evidence is weak.
"""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.sight.untraced import Hidden

SOFTMAXES = {F.softmax, F.softmin, torch.softmax, torch.special.softmax, Tensor.softmax, F.gumbel_softmax}

PRODUCTS = {
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__),
    *(torch.bmm, Tensor.bmm, torch.mm, Tensor.mm, torch.baddbmm, Tensor.baddbmm, torch.einsum),
    *(torch.tensordot, torch.inner, Tensor.inner),
}

SPREADS = {torch.mul, Tensor.mul, Tensor.mul_, Tensor.__mul__, Tensor.__rmul__, Tensor.__imul__, torch.multiply}
"""What multiplies each weight with what is broadcast to it: a mask, or all of a value."""

CHANGES = {
    *(torch.add, Tensor.add, Tensor.add_, Tensor.__add__, Tensor.__radd__, Tensor.__iadd__),
    *(torch.div, Tensor.div, Tensor.div_, Tensor.__truediv__, Tensor.__itruediv__),
}


class Softmaxes:
    """Follows the result of each softmax until it is multiplied."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._made: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        """Results of a softmax, and what was made of them."""
        self._changed: set[int] = set()
        """Those that something was added to or divided off."""

    def follow(self, func: Callable, args: tuple, result: Any) -> None:
        """Take note of a call of a torch function."""
        if func in SOFTMAXES:
            self._hidden.softmax()
            self._keep(result, changed=False)
            return
        if not self._made:
            return
        operands = list(_tensors(args))
        sources = [part for part in operands if self._made.get(id(part)) is part]
        if not sources:
            return
        changed = any(id(part) in self._changed for part in sources)
        spread = func in SPREADS and isinstance(result, Tensor) and result.numel() > sources[0].numel()
        if (func in PRODUCTS or spread) and not any(isinstance(part, nn.Parameter) for part in operands):
            self._hidden.attended(sure=not changed and not spread)
        if func not in PRODUCTS and _still_weights(result, sources[0]):
            self._keep(result, changed or func in CHANGES)

    def _keep(self, tensor: Tensor, changed: bool) -> None:
        self._made[id(tensor)] = tensor
        (self._changed.add if changed else self._changed.discard)(id(tensor))


def _still_weights(result: Any, source: Tensor) -> bool:
    """Whether a result may be weights in another form: behind dropout, without a sink, but not a router's few."""
    return isinstance(result, Tensor) and result.is_floating_point() and 2 * result.numel() > source.numel()


def _tensors(args: Any) -> Iterator[Tensor]:
    for part in args:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (list, tuple)):
            yield from _tensors(part)
