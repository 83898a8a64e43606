"""Attention weights as a model itself computes them, found without any part of foveate.

A dispatch mode sees every softmax that torch computes, below all Python functions, and which of them are then
multiplied with something else than a parameter: those are attention weights. The model has to run by kernels that have
a softmax, its own or torch's plain one, so this is for models of a few layers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

ATEN = torch.ops.aten

SOFTMAXES = {ATEN._softmax.default, ATEN._safe_softmax.default}

PRODUCTS = {ATEN.bmm.default, ATEN.mm.default, ATEN.baddbmm.default, ATEN.addmm.default}

OTHERWISE = {ATEN.add.Tensor, ATEN.add.Scalar, ATEN.div.Tensor, ATEN.sum.dim_IntList}
"""What makes something else of weights, such as the mixing of residual streams."""

HELPERS = (nn.Softmax, nn.Dropout)
"""Modules that take part in attention, but do not attend."""


@dataclass(eq=False)
class Softmax:
    """One softmax that was computed."""

    module: str
    weights: Tensor
    over_keys: bool
    """Whether it is over the last dimension."""
    attends: bool = False
    """Whether it was multiplied with values."""


class Softmaxes(TorchDispatchMode):
    """Collects every softmax while open, and follows it through other operations to the product with values."""

    def __init__(self, parameters: list[Tensor]) -> None:
        super().__init__()
        self.path: list[str] = []
        self.found: list[Softmax] = []
        self._parameters = {_memory(parameter) for parameter in parameters}
        self._made_of: dict[int, list[Softmax]] = {}
        self._alive: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        operands = [part for part in _flat(args) if isinstance(part, Tensor)]
        if func in SOFTMAXES:
            softmax = Softmax(
                self.path[-1] if self.path else "", result.detach().clone(), args[1] in (-1, result.ndim - 1)
            )
            self.found.append(softmax)
            self._mark(result, [softmax])
        elif func in PRODUCTS:
            if not any(_memory(part) in self._parameters for part in operands):
                for part in operands:
                    for softmax in self._made_of.get(_memory(part), []):
                        softmax.attends = True
        elif func not in OTHERWISE:
            softmaxes = [softmax for part in operands for softmax in self._made_of.get(_memory(part), [])]
            if softmaxes:
                for part in _flat((result,)):
                    if isinstance(part, Tensor) and part.is_floating_point():
                        self._mark(part, softmaxes)
        return result

    def _mark(self, tensor: Tensor, softmaxes: list[Softmax]) -> None:
        known = self._made_of.setdefault(_memory(tensor), [])
        known.extend(softmax for softmax in softmaxes if softmax not in known)
        self._alive.append(tensor)


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
    """Let torch's own attention functions compute a softmax, as they do where no fused kernel fits."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel([SDPBackend.MATH]):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


def has_softmax(run: Callable[[], Any]) -> bool:
    """Whether anything is computed that may be attention weights."""
    softmaxes = Softmaxes([])
    with plain(), softmaxes:
        run()
    return bool(softmaxes.found)


def weights_of(model: nn.Module, run: Callable[[], Any]) -> list[Softmax]:
    """The attention weights that the model computes in a run, in their order."""
    softmaxes = Softmaxes([*model.parameters(), *model.buffers()])
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if isinstance(module, (HELPERS, torch.jit.ScriptModule)):
                continue
            entering = module.register_forward_pre_hook(lambda *_, name=name: softmaxes.path.append(name))
            leaving = module.register_forward_hook(lambda *_: (softmaxes.path.pop(), None)[1], always_call=True)
            stack.callback(entering.remove)
            stack.callback(leaving.remove)
        stack.enter_context(plain())
        stack.enter_context(softmaxes)
        run()
    return [softmax for softmax in softmaxes.found if softmax.attends]
