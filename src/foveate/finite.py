"""Finds numbers that are not finite: in weights, before they are saved or used, and in what a model computes."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import TracebackType
from typing import Any

from torch import Tensor, nn

from foveate.accelerator import read_numbers
from foveate.errors import UserError

CAUSE = "its training went wrong, or its file is damaged"


class NotFinite(UserError):
    """A model whose weights or outputs are infinite or NaN."""


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor with a number that is infinite or NaN; None if all are finite."""
    floating = {name: tensor.detach() for name, tensor in tensors.items() if tensor.is_floating_point()}
    sums = read_numbers([tensor.sum().isfinite() for tensor in floating.values()])  # fast; a sum may overflow, though
    suspects = [name for name, is_finite in zip(floating, sums, strict=True) if not is_finite]
    return next((name for name in suspects if not floating[name].isfinite().all()), None)


def check_weights(model: nn.Module, name: str) -> None:
    """Raise NotFinite where a weight, or a statistic such as those of batch norm, is not finite."""
    if (tensor := first_not_finite(model.state_dict())) is not None:
        raise NotFinite(f"{name}: its tensor '{tensor}' has numbers that are not finite: {CAUSE}")


class FiniteOutputs:
    """A context in which a model and its parts compute finite numbers: raises NotFinite at its end if one did not.

    Numbers are looked at as they are computed, and the device is asked once, at the end. An output of the whole model
    may have -inf, as logits of what cannot be chosen.
    """

    def __init__(self, model: nn.Module, name: str) -> None:
        self.model, self.name = model, name
        self._sum: Tensor | None = None
        """0 while all numbers are finite, then NaN."""

    def __enter__(self) -> None:
        parts = [part for part in self.model.children() if part is not self.model]
        self._hooks = [part.register_forward_hook(self._note_part) for part in parts]
        self._hooks.append(self.model.register_forward_hook(self._note_output))

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for hook in self._hooks:
            hook.remove()
        failed = error is None or isinstance(error, Exception)  # such as of an assignment by costs that are NaN
        if failed and self._sum is not None and not bool(self._sum.isfinite()):
            raise NotFinite(f"{self.name}: the model's numbers are not finite: {CAUSE}") from None

    def _note_part(self, part: nn.Module, given: Any, output: Any) -> None:
        for tensor in _tensors(output):
            least, most = tensor.aminmax()
            self._add(most - least)

    def _note_output(self, model: nn.Module, given: Any, output: Any) -> None:
        for tensor in _tensors(output):
            self._add(tensor.amax())

    def _add(self, number: Tensor) -> None:
        nothing = 0 * number.float()
        self._sum = nothing if self._sum is None else self._sum + nothing


def _tensors(output: Any) -> Iterator[Tensor]:
    """The tensors of floating-point numbers in what a module returns."""
    if isinstance(output, Tensor):
        if output.is_floating_point() and output.numel():
            yield output.detach()
    elif isinstance(output, tuple | list):
        for part in output:
            yield from _tensors(part)
    elif is_dataclass(output):
        for one in fields(output):
            yield from _tensors(getattr(output, one.name))
