"""Optimizes a trained model for inference on a CPU, in float32, in bfloat16 or with 8-bit weights.

torch multiplies with weights in their row-major layout. For the few rows of a decoding step, oneDNN is faster with
weights in its own blocked layout, and faster still with weights of fewer bits.
"""

import copy
from collections.abc import Callable
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import UserError, one_of
from foveate.inference.convolutions import pack_convolutions
from foveate.inference.joint_attention import JointSelfAttention, join_self_attention
from foveate.inference.lean import make_lean
from foveate.inference.packed import LinearProduct, PackedLayer, PackedLinear, pad_rows
from foveate.nn import FeedForward, GatedFeedForward, MultiHeadAttention
from foveate.nn.feedforward import gelu_tanh
from foveate.nn.precision import cpu_has, cpu_has_bfloat16

Precision = Literal["float32", "bfloat16", "int8"]

_MIN_WEIGHTS = 2**16
"""Smaller weights are not packed: calling oneDNN would take longer than the product."""

_PACKED_TYPES = (torch.float32, torch.bfloat16)

_TINY = 1e-30
"""Least scale, so that a row of zeros is not divided by zero."""

_ACTIVATIONS = {
    F.relu: ("relu", ""),
    F.gelu: ("gelu", "none"),
    gelu_tanh: ("gelu", "tanh"),
    F.silu: ("swish", ""),
}
"""oneDNN's names of activations that it can fuse into a product."""


def optimize_for_cpu(model: nn.Module, precision: Precision = "float32") -> nn.Module:
    """A copy of a model that runs faster on a CPU and cannot be trained. Unchanged parts are shared with the model.

    The projections of queries, keys and values in self-attention become one product, as do convolutions over images
    with the batch norm after them.

    - "float32" computes the same sums in another order.
    - "bfloat16" computes in that type, except for the last layer `output`. Its weights have 8 bits, so that logits are
      in float32.
    - "int8" rounds the weights of all but small linear layers to 8 bits (7 on a CPU without VNNI) with a scale for each
      output, and their inputs to 8 bits with a scale for each row.

    With fewer bits than 32, memories of attention are in float32, except for those of self-attention on a CPU with AMX,
    which are in bfloat16. On a GPU, and without oneDNN for x86, "float32" returns the model itself.

    Raises UserError if the machine does not support the precision, and ValueError for a packed model and for "int8"
    with weights that are not in float32.
    """
    one_of("precision", precision, get_args(Precision))
    if any(isinstance(part, (JointSelfAttention, PackedLayer)) for part in model.modules()):
        raise ValueError("the model is already optimized; pass the original one")
    if precision == "int8" and any(part.dtype != torch.float32 for part in model.parameters()):
        raise ValueError("precision int8 needs weights in float32")
    if not _is_supported(model, precision):
        if precision != "float32":
            extension = " with AVX512-BF16 or AMX" * (precision == "bfloat16")
            raise UserError(f"precision {precision} needs an x86 CPU{extension} and torch with oneDNN; use float32")
        return model
    last = getattr(model, "output", None)
    parts = (*model.parameters(), *model.buffers())
    model = copy.deepcopy(model, {id(part): _to_bfloat16(part) if precision == "bfloat16" else part for part in parts})
    pack_convolutions(model)
    layer: Callable[[nn.Linear], nn.Module] = OneDNNInt8Linear if precision == "int8" else PackedLinear
    join_self_attention(model)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if (
                type(child) is nn.Linear
                and child.weight.numel() >= _MIN_WEIGHTS
                and child.weight.dtype in _PACKED_TYPES
            ):
                setattr(module, name, layer(child))
        if isinstance(module, FeedForward):
            _fuse_activation(module)
        if isinstance(module, MultiHeadAttention) and precision != "float32":
            module.memory_dtype = _memory_dtype(module)
    if precision == "bfloat16" and type(last) is nn.Linear:
        model.output = OneDNNInt8Linear(last)
    return make_lean(model)


def _memory_dtype(attention: MultiHeadAttention) -> torch.dtype | None:
    """The fastest type of a memory's keys and values; None, the type of the weights, for a learned score.

    With one query for each row, attention in bfloat16 takes half the time of float32 on a CPU with AMX, and reordering
    beams copies half as much. Without AMX, or with several queries, bfloat16 is slower.
    """
    if isinstance(attention.score, nn.Module):
        return None
    one_query = isinstance(attention, JointSelfAttention)
    return torch.bfloat16 if one_query and cpu_has("amx_bf16") else torch.float32


def _fuse_activation(layer: FeedForward) -> None:
    """Apply the activation in the packed layer before it, or in place, if that is possible."""
    before = layer.gate if isinstance(layer, GatedFeedForward) else layer.inner
    if isinstance(before, PackedLinear):
        before.activation, layer.activation = _ACTIVATIONS[layer.activation], _identity
    elif isinstance(before, OneDNNInt8Linear) and layer.activation is F.relu:
        layer.activation = torch.relu_


def _to_bfloat16(part: Tensor) -> Tensor:
    if not part.is_floating_point():
        return part
    half = part.detach().to(torch.bfloat16)
    return nn.Parameter(half, requires_grad=False) if isinstance(part, nn.Parameter) else half


def _is_supported(model: nn.Module, precision: Precision) -> bool:
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    able = precision != "bfloat16" or cpu_has_bfloat16()
    on_x86 = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    return on_cpu and on_x86 and able


def _identity(x: Tensor) -> Tensor:
    return x


def largest_code() -> int:
    """The largest 8-bit weight. Without VNNI, two products are added in 16 bits, which 2 * 255 * 127 overflows."""
    return 127 if cpu_has("avx512_vnni", "avx_vnni", "amx_int8") else 63


class OneDNNInt8Linear(PackedLayer, LinearProduct):
    """A linear layer with an 8-bit weight and 8-bit inputs; its output is in float32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp_min(_TINY) / largest_code()
        codes = (weight / scale[:, None]).round().to(torch.int8)
        self._weight = torch.ops.onednn.qlinear_prepack(codes, None)
        self._scale = scale
        self._zero = torch.zeros_like(scale, dtype=torch.int32)
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        rows = x.detach().reshape(-1, x.shape[-1]).float()
        # In place where possible: allocating a large tensor for each operation is slower (docs/log/decoding.md).
        scaled = rows.abs()
        largest = scaled.amax(-1, keepdim=True).clamp_min_(_TINY)
        torch.mul(rows, largest.reciprocal().mul_(127), out=scaled)
        # Zero at 128: CPUs multiply unsigned by signed bytes.
        codes = pad_rows(scaled.round_().to(torch.int8).view(torch.uint8).add_(128))
        y = torch.ops.onednn.qlinear_pointwise(
            codes, 1 / 127, 128, self._weight, self._scale, self._zero, None, 1.0, 0, torch.float32, "none", [], ""
        )[: len(rows)]
        y = y.mul_(largest) if self._bias is None else torch.addcmul(self._bias, y, largest, out=y)
        return y.view(*x.shape[:-1], len(self._scale))
