"""Attention weights as a model itself computes them, found without any part of foveate.

A dispatch mode sees every softmax that torch computes, below all Python functions, and which of them are then
multiplied with something else than a parameter: those are attention weights, as they are when they are multiplied. The
model has to run by kernels that have a softmax, its own or torch's plain one, so this is for models of a few layers.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

ATEN = torch.ops.aten

SOFTMAXES = {ATEN._softmax.default, ATEN._safe_softmax.default}

WRITTEN_OUT = {ATEN.exp.default, ATEN.div.Tensor, ATEN.mul.Tensor}
"""The last step of a softmax that is written out, if its rows sum to 1 where something is called attention."""

PRODUCTS = {ATEN.bmm.default: 0, ATEN.mm.default: 0, ATEN.mv.default: 0, ATEN.baddbmm.default: 1, ATEN.addmm.default: 1}
"""Products, and the place of their first operand."""

CHANGES = {ATEN.add.Tensor, ATEN.add.Scalar, ATEN.div.Tensor}
"""What makes something else of weights, such as the mixing of residual streams, where nothing is called attention."""

HELPERS = (nn.Softmax, nn.Dropout)
"""Modules that take part in attention, but do not attend."""

Running = tuple[tuple[str, str], ...]
"""Paths and classes of the modules that run, from the outermost one."""


@dataclass(eq=False)
class Softmax:
    """One softmax that was computed."""

    running: Running
    shape: torch.Size
    gate: bool = False
    """Whether its scores are what a linear layer gave."""
    changed: bool = False
    counts: set[int] = field(default_factory=set)
    """Numbers of keys of the products so far: some models multiply a part of the keys after another."""


@dataclass(eq=False)
class Weights:
    """Weights that were multiplied with values."""

    module: str
    weights: Tensor
    """(..., T, S)"""
    leading: torch.Size
    """Dimensions of the softmax before the last two."""


@dataclass(eq=False)
class Spread:
    """An elementwise product of weights and values."""

    softmaxes: list[Softmax]
    weights: Tensor
    values: Tensor


class Softmaxes(TorchDispatchMode):
    """Collects every softmax while open, and follows it through other operations to the product with values."""

    def __init__(self, parameters: list[Tensor]) -> None:
        super().__init__()
        self.running: list[tuple[str, str]] = []
        self.found: list[Weights] = []
        self.computed = False
        self._parameters = {_memory(parameter) for parameter in parameters}
        self._made_of: dict[int, list[Softmax]] = {}
        self._spread: dict[int, Spread] = {}
        self._gates: set[int] = set()
        self._alive: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        operands = [part for part in _flat(args) if isinstance(part, Tensor)]
        written_out = func in WRITTEN_OUT and any(map(_called_attention, self.running))
        if func in SOFTMAXES or (written_out and not self._known(operands) and _sums_to_one(result)):
            gate = bool(operands) and _memory(operands[0]) in self._gates | self._parameters
            self.computed = True
            self._mark(result, [Softmax(tuple(self.running), result.shape, gate)])
        elif func in PRODUCTS:
            self._multiply(args[PRODUCTS[func] :][:2], operands, result)
        elif func == ATEN.sum.dim_IntList and _memory(args[0]) in self._spread:
            self._sum(self._spread[_memory(args[0])], args[1])
        else:
            self._pass_on(func, operands, result)
        return result

    def _known(self, operands: list[Tensor]) -> list[Softmax]:
        return [softmax for part in operands for softmax in self._made_of.get(_memory(part), [])]

    def _multiply(self, factors: tuple[Tensor, Tensor], operands: list[Tensor], result: Tensor) -> None:
        if any(_memory(part) in self._parameters for part in operands):
            if (known := self._known(operands)) and result.numel() == operands[-2].numel():
                for softmax in known:
                    softmax.changed = True
                self._mark(result, known)  # heads are mixed
            self._gates.add(_memory(result))
            self._alive.append(result)
            return
        for place, part in enumerate(factors):
            weights = part if part.ndim < 2 or place == 0 else part.mT
            self._attend(self._made_of.get(_memory(part), []), torch.atleast_2d(weights))

    def _sum(self, spread: Spread, dims: list[int]) -> None:
        rank = max(spread.weights.ndim, spread.values.ndim)
        weights, values = (side[(None,) * (rank - side.ndim)] for side in (spread.weights, spread.values))
        dims = [dim % rank for dim in dims]
        if all(weights.shape[dim] == values.shape[dim] for dim in dims):
            kept = [dim for dim in range(rank) if dim not in dims]
            self._attend(spread.softmaxes, weights.permute(*kept, *dims).flatten(len(kept)))

    def _attend(self, softmaxes: list[Softmax], weights: Tensor) -> None:
        """Note that what was made of softmaxes is multiplied with values, unless it was before or may be something
        else."""
        keys = weights.shape[-1]
        if any(keys in one.counts or not self._is_attention(one) for one in softmaxes):
            return
        for softmax in softmaxes:
            softmax.counts.add(keys)
        for softmax in softmaxes[:1] if self.running else ():
            both = self._both(softmax)
            own = softmax.running[-1] if _called_attention(softmax.running[-1]) else both[-1]
            self.found.append(Weights(own[0], weights.detach().clone(), softmax.shape[:-2]))

    def _both(self, softmax: Softmax) -> list[tuple[str, str]]:
        """The modules in which both softmax and product are computed."""
        return [one for one, other in zip(softmax.running, self.running, strict=False) if one == other]

    def _is_attention(self, softmax: Softmax) -> bool:
        return any(map(_called_attention, self._both(softmax))) or not (softmax.changed or softmax.gate)

    def _pass_on(self, func: Any, operands: list[Tensor], result: Any) -> None:
        softmaxes = self._known(operands)
        if softmaxes and func == ATEN.mul.Tensor and len(operands) == 2:
            weights, values = operands if _memory(operands[0]) in self._made_of else operands[::-1]
            if result.numel() > weights.numel() and _memory(values) not in self._parameters:
                self._spread[_memory(result)] = Spread(softmaxes, weights, values)
                self._alive.append(result)
                return
        for part in _flat((result,)):
            if isinstance(part, Tensor) and part.is_floating_point():
                if softmaxes and 2 * part.numel() > operands[0].numel():
                    same = func == ATEN.mul.Tensor and sum(one.numel() == part.numel() for one in operands) > 1
                    for softmax in softmaxes:
                        softmax.changed |= func in CHANGES or same
                    self._mark(part, softmaxes)
                elif operands and _memory(operands[0]) in self._gates and part.shape == operands[0].shape:
                    self._gates.add(_memory(part))
                    self._alive.append(part)

    def _mark(self, tensor: Tensor, softmaxes: list[Softmax]) -> None:
        known = self._made_of.setdefault(_memory(tensor), [])
        known.extend(softmax for softmax in softmaxes if softmax not in known)
        self._alive.append(tensor)


def _called_attention(running: tuple[str, str]) -> bool:
    path, kind = running
    return bool(re.search("attent|attn", f"{path.rsplit('.', 1)[-1]} {kind}", re.IGNORECASE))


def _sums_to_one(result: Any) -> bool:
    """Whether the rows of a tensor, of two numbers or more, are positive and sum to 1."""
    if not isinstance(result, Tensor) or result.is_meta or result.ndim < 2 or not result.is_floating_point():
        return False
    rows = [result.sum(dim) for dim in (-1, -2) if result.shape[dim] > 1]
    return bool(rows) and bool((result >= 0).all()) and any(bool(((row - 1).abs() < 1e-5).all()) for row in rows)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _flat(parts: Any) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, (list, tuple)):
            yield from _flat(part)
        else:
            yield part


@contextmanager
def plain() -> Iterator[None]:
    """Let torch's own attention functions compute a softmax, as they do where no fused kernel fits.

    A forward pass in inference mode is one without gradients meanwhile: a dispatch mode sees no softmax in it.
    """
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel([SDPBackend.MATH]), patch.object(torch._C, "_InferenceMode", lambda mode: nullcontext()):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


def has_softmax(run: Callable[[], Any]) -> bool:
    """Whether anything is computed that may be attention weights."""
    softmaxes = Softmaxes([])
    with plain(), softmaxes:
        run()
    return softmaxes.computed


def weights_of(model: nn.Module, run: Callable[[], Any]) -> list[Weights]:
    """The attention weights that the model computes in a run, in their order; none of maps without rows or columns."""
    softmaxes = Softmaxes([*model.parameters(), *model.buffers()])
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if isinstance(module, (HELPERS, torch.jit.ScriptModule)):
                continue
            entering = module.register_forward_pre_hook(
                lambda module, _, name=name: softmaxes.running.append((name, type(module).__name__))
            )
            leaving = module.register_forward_hook(lambda *_: (softmaxes.running.pop(), None)[1], always_call=True)
            stack.callback(entering.remove)
            stack.callback(leaving.remove)
        stack.enter_context(plain())
        stack.enter_context(softmaxes)
        run()
    return [found for found in softmaxes.found if found.weights.numel()]
