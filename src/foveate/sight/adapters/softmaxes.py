"""Records attention that a model computes itself: the softmaxes that it multiplies with what it reads.

Routers and classifiers have a softmax, too. Attention weights differ in their use: they are multiplied with something
that is not a parameter. If something was added to them or they were divided before, they may be something else, such as
coefficients of residual streams; so may elementwise products and weights that a linear layer gives for a fixed number
of things, such as experts. There the module has to be called attention, or the evidence is weak.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from weakref import ref

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.sight.adapters.softmax_functions import (
    CHANGES,
    DIFFERENCES,
    DROPOUTS,
    EXPONENTIALS,
    LOG_SOFTMAXES,
    LOG_SUMS,
    NORMALIZED,
    PRODUCTS,
    QUOTIENTS,
    SIGMOIDS,
    SOFTMAXES,
    SPREADS,
    SUMS,
)
from foveate.sight.adapters.weighted_sum import WeightedSum, head_count, spread_sum, weighted_sum
from foveate.sight.call_adapter import has_values
from foveate.sight.untraced import called_attention
from foveate.sight.watcher import Running, Watcher

Value = TypeVar("Value")


class _OfTensors(Generic[Value]):
    """Something for each of some tensors, as long as the tensor lives."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[ref[Tensor], Value]] = {}

    def __setitem__(self, tensor: Tensor, value: Value) -> None:
        place, found = id(tensor), self._found
        found[place] = ref(tensor, lambda _: found.pop(place, None)), value

    def get(self, tensor: Any) -> Value | None:
        found = self._found.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def __bool__(self) -> bool:
        return bool(self._found)


@dataclass(eq=False)
class _Softmax:
    """A softmax of the model."""

    running: list[Running]
    """The modules that ran, from the outermost one."""
    gate: bool
    """Whether a linear layer gave its scores, for a fixed number of things."""
    sigmoid: bool = False
    recorded: set[tuple[Any, ...]] = field(default_factory=set)
    """Places and shapes of weights that were recorded: some models multiply a part of the keys after another."""


@dataclass(frozen=True, eq=False)
class _Weights:
    """A tensor of weights: the result of a softmax, or computed from it."""

    softmax: _Softmax
    changed: bool = False
    """Whether something was added or they were divided."""
    kept: Tensor | None = None
    """The same before dropout, if it dropped any."""


@dataclass(frozen=True, eq=False)
class _Spread:
    """An elementwise product of weights and values, which may be summed up next."""

    made: _Weights
    weights: Tensor
    values: Tensor


class SoftmaxTracker:
    """Follows the result of each softmax until it is multiplied."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher, self._untraced = watcher, watcher.untraced
        self._weights: _OfTensors[_Weights] = _OfTensors()
        self._spreads: _OfTensors[_Spread] = _OfTensors()
        self._gates: _OfTensors[bool] = _OfTensors()
        """Results of linear layers, for a fixed number of things."""
        self._logs: _OfTensors[bool] = _OfTensors()
        """Logarithms of softmaxes."""
        self._exponentials: _OfTensors[bool] = _OfTensors()
        """Numbers that a softmax which is written out divides by their sum."""
        self._log_sums: _OfTensors[bool] = _OfTensors()
        """Logarithms of sums of exponentials, from which a softmax which is written out subtracts them."""

    def before(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy weights that a function is about to drop in place."""
        if func in DROPOUTS and (kwargs.get("inplace") or func is torch.dropout_) and _drops(args, kwargs):
            made = self._weights.get(args[0])
            if made is not None and made.kept is None:
                self._weights[args[0]] = replace(made, kept=args[0].detach().clone())

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Process a call of a torch function."""
        if not isinstance(result, Tensor):
            return
        if func in SOFTMAXES or self._completes_softmax(func, args):
            self._untraced.note_softmax()
            self._weights[result] = _Weights(_Softmax(self._watcher.running, self._gates.get(args[0]) is not None))
            return
        if func is F.linear:
            self._gates[result] = True
        elif func in SIGMOIDS:
            if result.ndim > 2 and called_attention(self._watcher.running):
                self._weights[result] = _Weights(_Softmax(self._watcher.running, gate=False, sigmoid=True))
            return
        elif func in LOG_SOFTMAXES or self._subtracts_log_sum(func, args):
            self._logs[result] = True
        elif func in LOG_SUMS:
            self._log_sums[result] = True
        elif func in EXPONENTIALS:
            self._exponentials[result] = True
        elif func in CHANGES and args and self._gates.get(args[0]) and result.shape == args[0].shape:
            self._gates[result] = True
        if self._spreads and func in SUMS:
            self._sum(args, kwargs, result)
        if self._weights:
            self._multiply(func, args, kwargs, result)

    def _multiply(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor
    ) -> None:
        """Process a call that may read weights."""
        operands = [*_tensors(args), *_tensors(tuple(kwargs.values()))]
        sources = [(part, made) for part in operands if (made := self._weights.get(part)) is not None]
        if not sources:
            return
        source, made = sources[0]
        learned = any(map(_is_parameter, operands))
        spread = func in SPREADS and result.numel() > source.numel()
        if func in PRODUCTS:
            for weights, each in () if learned else sources:
                self._take(weighted_sum(func, (*args, *kwargs.values()), weights, result), each)
            return
        if spread and not learned and len(operands) == 2:
            values = operands[1] if operands[0] is source else operands[0]
            self._spreads[result] = _Spread(made, source, values)
            if not made.softmax.sigmoid:
                self._untraced.note_product(sure=False)
        part = func is Tensor.__getitem__ and called_attention(made.softmax.running)
        if part or _still_weights(result, source):
            changed = made.changed or func in CHANGES
            if func in DROPOUTS:
                kept = source if made.kept is None and result is not source and _drops(args, kwargs) else made.kept
            else:
                kept = self._repeated(func, args, kwargs, source, made)
            self._weights[result] = _Weights(made.softmax, changed, kept)

    def _repeated(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], source: Tensor, made: _Weights
    ) -> Tensor | None:
        """What a function would give if no weights had been dropped before; None if none were."""
        if made.kept is None:
            return None
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                return func(*(made.kept if part is source else part for part in args), **kwargs)
        except (TypeError, RuntimeError):
            return None

    def _sum(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        """Process a sum, which may be of an elementwise product."""
        spread = self._spreads.get(args[0]) if args else None
        dims = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if spread is not None and dims is not None:
            dims = [dims] if isinstance(dims, int) else list(dims)
            named = called_attention([*spread.made.softmax.running, *self._watcher.running])
            if named or not (spread.made.changed or spread.made.softmax.gate):
                self._record(spread_sum(spread.weights, spread.values, result, dims), spread.made)

    def _take(self, product: WeightedSum | None, made: _Weights) -> None:
        """Record a product of weights, or note what it may be."""
        softmax = made.softmax
        named = called_attention([*softmax.running, *self._watcher.running])
        if softmax.sigmoid and not named:
            return
        sure = named or not (made.changed or softmax.gate)
        if not (sure and self._record(product, made)) and not softmax.sigmoid:
            self._untraced.note_product(sure=sure)

    def _record(self, product: WeightedSum | None, made: _Weights) -> bool:
        """Record a product; whether it could be."""
        softmax = made.softmax
        if product is None or not has_values(product.output):
            return False
        which = product.weights.storage_offset(), product.weights.shape
        if which in softmax.recorded:
            return True
        name, module = _common(softmax.running, self._watcher.running)
        heads = head_count(module)
        arranged = product.arranged(heads)
        if arranged is None:
            return False
        kept = None if made.kept is None or made.kept.shape != product.weights.shape else replace(product, weights=made.kept)
        softmax.recorded.add(which)
        before = None if kept is None else kept.arranged(heads)
        self._watcher.record_weights((name, module), arranged, None if before is None else before.weights)
        return True

    def _completes_softmax(self, func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether a call is the last part of a softmax: exp(log_softmax(x)), or exp(x) divided by its sum."""
        if func in EXPONENTIALS:
            return self._logs.get(args[0]) is not None
        if func in NORMALIZED:
            return self._exponentials.get(args[0]) is not None
        if func not in QUOTIENTS or self._exponentials.get(args[0]) is None or len(args) < 2:
            return False
        above, below = args[:2]
        sizes = zip(above.shape, below.shape, strict=False) if isinstance(below, Tensor) else ()
        return sum(1 for size, sums in sizes if sums == 1 < size) == 1

    def _subtracts_log_sum(self, func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether a call gives x - logsumexp(x)."""
        return func in DIFFERENCES and len(args) > 1 and self._log_sums.get(args[1]) is not None


def _common(one: list[Running], other: list[Running]) -> Running:
    """The innermost module in which both softmax and product were computed, or the one that is called attention and
    computed the softmax."""
    if called_attention(one[-1:]):
        return one[-1]
    shared = [first for first, second in zip(one, other, strict=False) if first == second]
    return shared[-1]


def _drops(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns whether a dropout function drops anything."""
    share, training = (*args[1:3], *(True,) * (3 - len(args)))[:2] if len(args) > 1 else (0.5, True)
    return bool(kwargs.get("p", share)) and bool(kwargs.get("training", kwargs.get("train", training)))


def _is_parameter(tensor: Tensor) -> bool:
    """Returns whether a tensor is a parameter or a view of one."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _still_weights(result: Tensor, source: Tensor) -> bool:
    """Returns whether a result may still be weights: after dropout or without a sink, but not the few that a router
    selects."""
    return result.is_floating_point() and 2 * result.numel() > source.numel()


def _tensors(args: Any) -> Iterator[Tensor]:
    for part in args:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (list, tuple)):
            yield from _tensors(part)
