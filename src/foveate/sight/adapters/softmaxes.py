"""Records attention that a model computes itself: the softmaxes that it multiplies with what it reads.

Routers and classifiers have a softmax, too. Attention weights differ in their use: they are multiplied with something
that is not a parameter. If something was added to them or they were divided before, they may be something else, such as
coefficients of residual streams; so may elementwise products and weights that a linear layer gives for a fixed number
of things, such as experts. There the module has to be called attention, or the evidence is weak.

Other rules, such as sparsemax or scores divided by their sum, are known by their numbers: what is computed of a product
of queries and keys, number by number, are weights if it sums to one over the keys, or if it is what a ReLU left in a
module that is called attention.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from weakref import ref

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.sight.adapters.sampled_points import SAMPLERS, SampledMap, joined, point_call, sample_of
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
    RECTIFIERS,
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
    """Whether a linear layer or a parameter gave its scores, for a fixed number of things."""
    sigmoid: bool = False
    scores: bool = False
    """Whether it is none, but scores: what is computed of them counts as weights if it turns out to be shares."""
    recorded: set[tuple[Any, ...]] = field(default_factory=set)
    """Places and shapes of weights that were recorded: some models multiply a part of the keys after another."""


@dataclass(frozen=True, eq=False)
class _Weights:
    """A tensor of weights: the result of a softmax, or computed from it."""

    softmax: _Softmax
    changed: bool = False
    """Whether something was added or they were divided."""
    dropped: bool = False
    """Whether dropout dropped any."""
    kept: Tensor | None = None
    """The same before dropout, as far as that is known."""
    rectified: bool = False
    """Of scores: whether negative ones were made zero."""
    exponential: bool = False
    """Of scores: whether they are exponentials, which may be divided by their sum later."""


@dataclass(frozen=True, eq=False)
class _Spread:
    """An elementwise product of weights and values, which may be summed up next."""

    made: _Weights
    weights: Tensor
    values: Tensor
    samples: tuple[SampledMap, ...] | None = None
    """Where the values come from, if they were read at points of feature maps."""


class SoftmaxTracker:
    """Follows the result of each softmax until it is multiplied."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher, self._untraced = watcher, watcher.untraced
        self._weights: _OfTensors[_Weights] = _OfTensors()
        self._spreads: _OfTensors[_Spread] = _OfTensors()
        self._gates: _OfTensors[bool] = _OfTensors()
        """Results of linear layers, for a fixed number of things."""
        self._scores: _OfTensors[bool] = _OfTensors()
        """Products of two tensors that are not learned: only of these a sigmoid may be weights, others are gates."""
        self._logs: _OfTensors[bool] = _OfTensors()
        """Logarithms of softmaxes."""
        self._exponentials: _OfTensors[bool] = _OfTensors()
        """Numbers that a softmax which is written out divides by their sum."""
        self._log_sums: _OfTensors[bool] = _OfTensors()
        """Logarithms of sums of exponentials, from which a softmax which is written out subtracts them."""
        self._samples: _OfTensors[tuple[SampledMap, ...]] = _OfTensors()
        """Values that were read at points of feature maps."""

    def before(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy weights that a function is about to drop in place."""
        if func in DROPOUTS and (kwargs.get("inplace") or func is torch.dropout_) and _drops(args, kwargs):
            made = self._weights.get(args[0])
            if made is not None and not made.dropped:
                self._weights[args[0]] = replace(made, dropped=True, kept=args[0].detach().clone())

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Process a call of a torch function. Returns its result, or another one where attention is changed."""
        every = (*args, *kwargs.values())
        if not isinstance(result, Tensor) or not every:
            return result
        if func in SOFTMAXES or self._completes_softmax(func, every):
            self._untraced.note_softmax()
            self._weights[result] = _Weights(_Softmax(self._watcher.running, self._is_gate(every, kwargs, result)))
            return result
        if func in SIGMOIDS:
            if self._scores.get(every[0]) and called_attention(self._watcher.running):
                self._weights[result] = _Weights(_Softmax(self._watcher.running, gate=False, sigmoid=True))
            elif (made := self._weights.get(every[0])) is not None and made.softmax.scores:
                self._weights[result] = made
            return result
        if func in SAMPLERS and (sample := sample_of(args, kwargs)) is not None:
            self._samples[result] = (sample,)
        elif self._samples and (samples := joined(result, [*_tensors(every)], self._samples.get)) is not None:
            self._samples[result] = samples
        elif func is F.linear and _is_parameter(every[1]):
            self._gates[result] = True
        elif func in LOG_SOFTMAXES or self._subtracts_log_sum(func, every):
            self._logs[result] = True
        elif func in LOG_SUMS:
            self._log_sums[result] = True
        elif func in EXPONENTIALS:
            self._exponentials[result] = True
        elif func in PRODUCTS and not any(map(_is_parameter, _tensors(every))):
            result = self._multiply(func, args, kwargs, result) if self._weights else result
            self._scores[result] = True
            if self._weights.get(result) is None:
                self._weights[result] = _Weights(_Softmax(self._watcher.running, gate=False, scores=True))
            return result
        elif isinstance(every[0], Tensor) and result.shape == every[0].shape:
            for known in (self._gates, self._scores):
                if known.get(every[0]):
                    known[result] = True
        if self._spreads and func in SUMS and (spread := self._spreads.get(every[0])) is not None:
            return self._sum(spread, args, kwargs, result)
        return self._multiply(func, args, kwargs, result) if self._weights else result

    def _is_gate(self, every: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> bool:
        """Returns whether a softmax is over things for which a linear layer or a parameter gives a number each."""
        if isinstance(every[0], Tensor) and _is_parameter(every[0]):
            return True
        dim = kwargs.get("dim", every[1] if len(every) > 1 else -1)
        return self._gates.get(every[0]) is not None and dim in (-1, result.ndim - 1)

    def _multiply(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor
    ) -> Tensor:
        """Process a call that may read weights."""
        operands = [*_tensors(args), *_tensors(tuple(kwargs.values()))]
        sources = [(part, made) for part in operands if (made := self._weights.get(part)) is not None]
        if not sources:
            return result
        sources.sort(key=lambda each: each[1].softmax.scores)
        source, made = sources[0]
        learned = any(map(_is_parameter, operands))
        mixed = learned and func in PRODUCTS and result.shape == source.shape  # heads among each other
        if func in PRODUCTS and not (mixed and (source.ndim > 3 or called_attention(made.softmax.running))):
            for weights, each in () if learned else sources:
                result = self._take(weighted_sum(func, (*args, *kwargs.values()), weights, result), each, result)
            return result
        if func in SPREADS and result.numel() > source.numel() and not learned and len(operands) == 2:
            values = operands[1] if operands[0] is source else operands[0]
            self._spreads[result] = _Spread(made, source, values, self._samples.get(values))
            if not (made.softmax.sigmoid or made.softmax.scores):
                self._untraced.note_product(sure=False)
            return result
        if learned and made.softmax.scores:
            return result
        part = func is Tensor.__getitem__ and called_attention(made.softmax.running)
        if part or _still_weights(result, source):
            gated = func in SPREADS and sum(part.numel() == result.numel() for part in operands) > 1
            changed = made.changed or learned or gated or func in CHANGES
            self._weights[result] = replace(
                self._without_dropout(func, args, kwargs, source, result),
                changed=changed,
                rectified=made.rectified or func in RECTIFIERS,
                exponential=made.exponential or func in EXPONENTIALS,
            )
        return result

    def _without_dropout(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], source: Tensor, result: Tensor
    ) -> _Weights:
        """What a function makes of weights, and what it would make of those before dropout."""
        made = self._weights.get(source)
        assert made is not None
        if func in DROPOUTS:
            drops = not made.dropped and result is not source and _drops(args, kwargs)
            return replace(made, dropped=True, kept=source) if drops else made
        if made.kept is None:
            return made
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                kept = func(*(made.kept if part is source else part for part in args), **kwargs)
        except (TypeError, RuntimeError):  # a function that takes the weights by name or in a list
            kept = None
        return replace(made, kept=kept)

    def _sum(self, spread: _Spread, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> Tensor:
        """Process the sum of an elementwise product."""
        made, dims = spread.made, kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dims is None:
            return result
        dims = [dims] if isinstance(dims, int) else list(dims)
        product = spread_sum(spread.weights, spread.values, result, dims)
        if not self._attends(made, product):
            return result
        attended = self._attend(product, made, result, spread.samples)
        return result if attended is None else attended

    def _take(self, product: WeightedSum | None, made: _Weights, result: Tensor) -> Tensor:
        """Process a product of weights, which is attention, or note what it may be."""
        sure = self._attends(made, product)
        attended = self._attend(product, made, result) if sure else None
        if attended is None and not made.softmax.sigmoid and (made.exponential or not made.softmax.scores):
            self._untraced.note_product(sure=sure)
        return result if attended is None else attended

    def _attends(self, made: _Weights, product: WeightedSum | None) -> bool:
        """Returns whether a product of weights is attention, certainly."""
        if made.softmax.scores:
            if product is None or not has_values(product.output):
                return False
            named = made.rectified and called_attention(_shared(made.softmax.running, self._watcher.running))
            return product.is_mean() or (named and product.reads_last())
        if called_attention(_shared(made.softmax.running, self._watcher.running)):
            return True
        return not (made.changed or made.softmax.gate or made.softmax.sigmoid)

    def _attend(
        self,
        product: WeightedSum | None,
        made: _Weights,
        result: Tensor,
        samples: tuple[SampledMap, ...] | None = None,
    ) -> Tensor | None:
        """Report a product to the watcher. Returns its result, or another one if it is changed.

        None if it has an unknown layout, or if the weights before dropout are not known.
        """
        if product is None or (made.dropped and made.kept is None):
            return None
        if not has_values(product.output):
            self._untraced.note_opaque()
            return result
        weights, softmax = product.weights, made.softmax
        which = weights.storage_offset(), weights.shape
        if which in softmax.recorded:
            return result
        place = _common(softmax.running, self._watcher.running)
        with torch._C.DisableTorchFunction():
            heads = head_count(place[1])
            arranged = product.arranged(heads)
            if arranged is None:
                return None
            softmax.recorded.add(which)
            if samples is not None and not made.dropped:
                arranged.points = point_call(samples, arranged)
            if made.kept is not None:
                before = replace(product, weights=made.kept.reshape(weights.shape)).arranged(heads)
                arranged.before_dropout = None if before is None else before.weights
            changed = self._watcher.change(lambda: arranged.as_scores(place[0]), place)
            if changed is not None:
                arranged.output = changed.output.reshape(arranged.output.shape).to(product.output.dtype)
            if changed is not None or self._watcher.keeps_graph:
                result = product.restored(arranged.output, heads).view(result.shape)
            self._watcher.record_weights(place, arranged)
        return result

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
    return _shared(one, other)[-1]


def _shared(one: list[Running], other: list[Running]) -> list[Running]:
    """The modules in which both softmax and product were computed."""
    return [first for first, second in zip(one, other, strict=False) if first == second]


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
    return result.is_floating_point() and source.numel() < 2 * result.numel()


def _tensors(args: Any) -> Iterator[Tensor]:
    for part in args:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (list, tuple)):
            yield from _tensors(part)
