"""Follows softmaxes that a model computes itself: evidence of attention that cannot be recorded.

Routers and classifiers have a softmax, too. Attention weights differ in their use: they are multiplied with something
that is not a parameter. If something was added to them or they were divided before, they may be something else, such as
coefficients of residual streams, and the evidence is weak.
"""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.sight.untraced import Untraced

ATEN = torch.ops.aten
"""The operators that programs of torch.export call; decomposed programs call only the core ones."""


def _operators(*names: str) -> list[Any]:
    """Torch's core operators of these names, with all their overloads."""
    packets = [getattr(ATEN, name) for name in names]
    return [*packets, *(getattr(packet, overload) for packet in packets for overload in packet.overloads())]


SOFTMAXES = {
    *(F.softmax, F.softmin, torch.softmax, torch.special.softmax, Tensor.softmax, F.gumbel_softmax),
    torch._softmax,
    *_operators("softmax", "_softmax", "_safe_softmax", "special_softmax"),
}

LOG_SOFTMAXES = {
    *(F.log_softmax, torch.log_softmax, torch.special.log_softmax, Tensor.log_softmax),
    *_operators("log_softmax", "_log_softmax", "special_log_softmax"),
}

EXPONENTIALS = {
    *(torch.exp, Tensor.exp, Tensor.exp_, torch.exp2, Tensor.exp2, torch.special.exp2),
    *_operators("exp", "exp2", "special_exp2"),
}

LOG_SUMS = {torch.logsumexp, Tensor.logsumexp, torch.special.logsumexp, *_operators("logsumexp", "special_logsumexp")}

DIFFERENCES = {
    *(torch.sub, torch.subtract, Tensor.sub, Tensor.subtract, Tensor.__sub__, *_operators("sub")),
}

NORMALIZED = {F.normalize}
"""Divide by a norm, which is the sum of exponentials if it is the first one."""

QUOTIENTS = {
    *(torch.div, torch.divide, torch.true_divide, Tensor.div, Tensor.div_, Tensor.__truediv__, Tensor.__itruediv__),
    *_operators("div"),
}

PRODUCTS = {
    *(ATEN.matmul.default, ATEN.bmm.default, ATEN.mm.default, ATEN.baddbmm.default, ATEN.einsum.default),
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__),
    *(torch.bmm, Tensor.bmm, torch.mm, Tensor.mm, torch.baddbmm, Tensor.baddbmm, torch.einsum),
    *(torch.tensordot, torch.inner, Tensor.inner),
}

SPREADS = {
    *(torch.mul, Tensor.mul, Tensor.mul_, Tensor.__mul__, Tensor.__rmul__, Tensor.__imul__, torch.multiply),
    ATEN.mul.Tensor,
}
"""Elementwise products of each weight with a mask, or with a whole value by broadcasting."""

CHANGES = {
    *(torch.add, Tensor.add, Tensor.add_, Tensor.__add__, Tensor.__radd__, Tensor.__iadd__),
    *(ATEN.add.Tensor, *QUOTIENTS),
}


class SoftmaxTracker:
    """Follows the result of each softmax until it is multiplied."""

    def __init__(self, untraced: Untraced) -> None:
        self._untraced = untraced
        self._weights: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        """Results of a softmax, and tensors computed from them that may still be weights."""
        self._changed: set[int] = set()
        """Those to which something was added, or which were divided."""
        self._logs: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        """Logarithms of softmaxes."""
        self._exponentials: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        """Numbers that a softmax which is written out divides by their sum."""
        self._log_sums: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        """Logarithms of sums of exponentials, from which a softmax which is written out subtracts them."""

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        """Process a call of a torch function."""
        if func in SOFTMAXES or self._completes_softmax(func, args):
            self._untraced.note_softmax()
            self._track(result, changed=False)
            return
        if func in LOG_SOFTMAXES or self._subtracts_log_sum(func, args):
            self._logs[id(result)] = result
        elif func in LOG_SUMS and isinstance(result, Tensor):
            self._log_sums[id(result)] = result
        elif func in EXPONENTIALS and isinstance(result, Tensor):
            self._exponentials[id(result)] = result
        if not self._weights:
            return
        operands = list(_tensors(args))
        sources = [part for part in operands if self._weights.get(id(part)) is part]
        if not sources:
            return
        changed = any(id(part) in self._changed for part in sources)
        spread = func in SPREADS and isinstance(result, Tensor) and result.numel() > sources[0].numel()
        if (func in PRODUCTS or spread) and not any(isinstance(part, nn.Parameter) for part in operands):
            self._untraced.note_product(sure=not changed and not spread)
        if func not in PRODUCTS and _still_weights(result, sources[0]):
            self._track(result, changed or func in CHANGES)

    def _completes_softmax(self, func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether a call is the last part of a softmax: exp(log_softmax(x)), or exp(x) divided by its sum."""
        if func in EXPONENTIALS:
            return self._logs.get(id(args[0])) is args[0]
        if func in NORMALIZED:
            return self._exponentials.get(id(args[0])) is args[0]
        if func not in QUOTIENTS or self._exponentials.get(id(args[0])) is not args[0] or len(args) < 2:
            return False
        above, below = args[:2]
        sizes = zip(above.shape, below.shape, strict=False) if isinstance(below, Tensor) else ()
        return sum(1 for size, sums in sizes if sums == 1 < size) == 1

    def _subtracts_log_sum(self, func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether a call gives x - logsumexp(x)."""
        below = args[1] if func in DIFFERENCES and len(args) > 1 else None
        return isinstance(below, Tensor) and self._log_sums.get(id(below)) is below

    def _track(self, tensor: Tensor, changed: bool) -> None:
        self._weights[id(tensor)] = tensor
        (self._changed.add if changed else self._changed.discard)(id(tensor))


def _still_weights(result: Any, source: Tensor) -> bool:
    """Returns whether a result may still be weights: after dropout or without a sink, but not the few that a router
    selects."""
    return isinstance(result, Tensor) and result.is_floating_point() and 2 * result.numel() > source.numel()


def _tensors(args: Any) -> Iterator[Tensor]:
    for part in args:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (list, tuple)):
            yield from _tensors(part)
