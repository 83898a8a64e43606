"""Layers whose weights are in a layout of oneDNN."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from foveate.nn.precision import cpu_has


class PackedLayer(nn.Module):
    """A layer with a weight in oneDNN's layout. Copies of a model share it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLayer":
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        raise cannot_save()


def cannot_save() -> ValueError:
    return ValueError("an optimized model cannot be saved; save the original one")


class LinearProduct(nn.Module):
    """A linear layer whose weights are packed, or of fewer bits."""

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        raise NotImplementedError


class PackedLinear(PackedLayer, LinearProduct):
    """A linear layer with a weight in oneDNN's blocked layout, in single or half precision, as is its output."""

    activation = "none", ""
    """Activation of the output: oneDNN's names of the function and of its algorithm."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self._dtype = linear.weight.dtype
        self._pads = self._dtype == torch.bfloat16 and cpu_has("amx_bf16")
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        # oneDNN needs an input of the weight's type; under autocast it may have another one.
        rows = x.reshape(-1, x.shape[-1]).to(self._dtype)
        count, (name, way) = len(rows), self.activation
        if self._pads:
            rows = pad_rows(rows)
        y = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, name, [], way)
        return y[:count].view(*x.shape[:-1], y.shape[-1])


def pad_rows(rows: Shaped[Tensor, "R C"]) -> Shaped[Tensor, "Q C"]:
    """Pad with rows of zeros to one of few sizes.

    oneDNN compiles a kernel for each new number of rows, and that number changes at each step of a search. For 1,000
    sentences, compiling takes a seventh of the time in bfloat16 with AMX (3 ms a kernel) and a fiftieth in 8 bits. In
    float32 the copy would cost as much as it saves. One row, a step of one text, stays alone: in 8 bits it then takes
    0.55 to 0.82 of the time.
    """
    missing = 0 if len(rows) == 1 else -len(rows) % (1 << max(3, len(rows).bit_length() - 4))
    return F.pad(rows, (0, 0, 0, missing)) if missing else rows
