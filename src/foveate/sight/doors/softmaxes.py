"""Softmaxes that a model computes by itself: evidence of attention that cannot be seen.

A router or a classifier has a softmax, too. Attention weights are known by what becomes of them: they are multiplied with
something that is no parameter.
"""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.sight.hidden import Hidden

SOFTMAXES = {F.softmax, torch.softmax, Tensor.softmax, F.gumbel_softmax}

PRODUCTS = {
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__),
    *(torch.bmm, Tensor.bmm, torch.mm, Tensor.mm, torch.baddbmm, Tensor.baddbmm, torch.einsum),
}


class Softmaxes:
    """Follows the result of each softmax until it is multiplied."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._made: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        """Results of a softmax, and what was made of them."""

    def follow(self, func: Callable, args: tuple, result: Any) -> None:
        """Take note of a call of a torch function."""
        if func in SOFTMAXES:
            self._hidden.softmax()
            self._made[id(result)] = result
            return
        if not self._made:
            return
        operands = list(_tensors(args))
        sources = [part for part in operands if self._made.get(id(part)) is part]
        if not sources:
            return
        if func in PRODUCTS:
            if not any(isinstance(part, nn.Parameter) for part in operands):
                self._hidden.attended()
        elif isinstance(result, Tensor) and result.is_floating_point():
            # Dropout, another shape or type, the part without a sink; but not the few that a router chooses.
            if 2 * result.numel() > sources[0].numel():
                self._made[id(result)] = result


def _tensors(args: Any) -> Iterator[Tensor]:
    for part in args:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (list, tuple)):
            yield from _tensors(part)
