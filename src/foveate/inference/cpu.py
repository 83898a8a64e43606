"""A trained model laid out for running on a CPU, in full precision, in bfloat16 or with weights of eight bits.

torch multiplies by a weight as training keeps it, row after row. For the few rows of a decoding step, oneDNN is faster
with a weight that was laid out in its own blocks beforehand, and faster still with one of fewer bits.
"""

import copy
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from foveate.errors import UserError, one_of
from foveate.nn import DecoderBlock, EncoderBlock, FeedForward, MultiHeadAttention
from foveate.nn.attention import heads_of
from foveate.nn.precision import cpu_has, cpu_has_bfloat16

Precision = Literal["float32", "bfloat16", "int8"]

_LEAST = 2**16
"""Weights with fewer numbers stay as they are: a call of oneDNN takes longer than the product."""

_PACKED = (torch.float32, torch.bfloat16)

_TINY = 1e-30
"""Keeps a row of zeros from being divided by zero."""

_ACTIVATIONS = {F.relu: ("relu", ""), F.gelu: ("gelu", "none"), F.silu: ("swish", "")}
"""What oneDNN applies to a product while it is in the processor's registers, by the names that it has there."""


def optimize_for_cpu(model: nn.Module, precision: Precision = "float32") -> nn.Module:
    """A copy of a model that runs faster on a CPU and cannot learn; what need not differ is shared.

    The queries, keys and values of a block's self-attention become one product. With "float32" it computes the same
    sums in another order. "bfloat16" computes in that type, but for the model's last layer, `output`: its weights have
    8 bits, so that what is compared with each other comes out in float32. "int8" rounds the weights of linear layers,
    but for small ones, to 8 bits (7 on a CPU without VNNI), with a scale for each output, and what they are multiplied
    by to 8 bits, with a scale for each row. With either, what is attended to step by step is in float32, but for the
    past of self-attention on a CPU with AMX, which is in bfloat16. Where torch has no oneDNN for x86, and on a GPU, the
    model itself is returned; UserError if fewer bits were asked for, or bfloat16 of a CPU that does not multiply in it;
    ValueError for a model that is packed already, and of "int8" for weights that are not in float32.
    """
    one_of("precision", precision, get_args(Precision))
    if any(isinstance(part, (JointSelfAttention, PackedLayer)) for part in model.modules()):
        raise ValueError("this model is packed already; pack the one that it was made from")
    if precision == "int8" and any(part.dtype != torch.float32 for part in model.parameters()):
        raise ValueError("precision int8 is made of weights in float32; load them so")
    if not _served(model, precision):
        if precision != "float32":
            able = " with AVX512-BF16 or AMX" * (precision == "bfloat16")
            raise UserError(f"precision {precision} needs an x86 CPU{able} and torch with oneDNN; use float32 here")
        return model
    last = getattr(model, "output", None)
    parts = (*model.parameters(), *model.buffers())
    model = copy.deepcopy(model, {id(part): _in_half(part) if precision == "bfloat16" else part for part in parts})
    layer: Callable[[nn.Linear], nn.Module] = Int8Linear if precision == "int8" else PackedLinear
    for part in model.modules():
        if isinstance(part, (EncoderBlock, DecoderBlock)) and isinstance(part.self.query, nn.Linear):
            part.self = JointSelfAttention(part.self)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear and child.weight.numel() >= _LEAST and child.weight.dtype in _PACKED:
                setattr(module, name, layer(child))
        if isinstance(module, FeedForward):
            _activate_where_it_is(module)
        if isinstance(module, MultiHeadAttention) and precision != "float32":
            module.kept = _kept(module)
    if precision == "bfloat16" and type(last) is nn.Linear:
        model.output = Int8Linear(last)
    return model


def _kept(attention: MultiHeadAttention) -> torch.dtype | None:
    """The type of a memory's keys and values that takes the least time, where fewer bits than 32 will do.

    With one query for each row, torch's attention in bfloat16 takes half the time of two products in float32 on a CPU
    with AMX, and half as much moves when beams change places. Without AMX, or with several queries, it takes longer.
    None, the type of the weights, for a score that is learned: its own have that.
    """
    if isinstance(attention.score, nn.Module):
        return None
    one_query = isinstance(attention, JointSelfAttention)
    return torch.bfloat16 if one_query and cpu_has("amx_bf16") else torch.float32


def _activate_where_it_is(layer: FeedForward) -> None:
    """Have what a packed inner layer puts out activated without a tensor of its own, where there is a way to."""
    if isinstance(layer.inner, PackedLinear):
        layer.inner.activation, layer.activation = _ACTIVATIONS[layer.activation], _as_it_is
    elif isinstance(layer.inner, Int8Linear) and layer.activation is F.relu:
        layer.activation = torch.relu_


def _in_half(part: Tensor) -> Tensor:
    if not part.is_floating_point():
        return part
    half = part.detach().to(torch.bfloat16)
    return nn.Parameter(half, requires_grad=False) if isinstance(part, nn.Parameter) else half


def _served(model: nn.Module, precision: Precision) -> bool:
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    able = precision != "bfloat16" or cpu_has_bfloat16()
    on_x86 = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    return on_cpu and on_x86 and able


def _not_saved() -> ValueError:
    return ValueError("a packed model is not to be saved; save the one that it was made from")


class JointSelfAttention(MultiHeadAttention):
    """Self-attention that projects queries, keys and values by one matrix; there is no other source to look into."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        self.head_width, self.value_width = attention.head_width, attention.value_width
        parts = attention.query, attention.key, attention.value
        self.widths = [part.out_features for part in parts]
        weight, bias = (torch.cat([getattr(part, name) for part in parts]) for name in ("weight", "bias"))
        self.joint = nn.Linear(weight.shape[1], weight.shape[0], device="meta")  # its weights come at once
        self.joint.weight = nn.Parameter(weight, requires_grad=False)
        self.joint.bias = nn.Parameter(bias, requires_grad=False)
        self.output, self.score, self.dropout = attention.output, attention.score, attention.dropout
        self.training = attention.training

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        raise _not_saved()

    def _all_of(self, x: Float[Tensor, "B T C"]) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self.joint(x).split(self.widths, -1)
        return heads_of(queries, self.head_width), heads_of(keys, self.head_width), heads_of(values, self.value_width)

    def _keys_values(self, source: Float[Tensor, "B S C"]) -> tuple[Tensor, Tensor]:
        return self._all_of(source)[1:]


class PackedLayer(nn.Module):
    """A layer whose weight lies as oneDNN wants it, for good: whoever copies a model has the same layer."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLayer":
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        raise _not_saved()


class PackedLinear(PackedLayer):
    """A linear layer whose weight lies in oneDNN's blocks, in float32 or bfloat16; its output is of the same type."""

    activation = "none", ""
    """What is applied to the output, by oneDNN's name for it and for the way to compute it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self._dtype = linear.weight.dtype
        self._rounds = self._dtype == torch.bfloat16 and cpu_has("amx_bf16")
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        # oneDNN wants an input of the weight's type, which autocast's may not be.
        rows = x.reshape(-1, x.shape[-1]).to(self._dtype)
        count, (name, way) = len(rows), self.activation
        if self._rounds:
            rows = _rounded(rows)
        y = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, name, [], way)
        return y[:count].view(*x.shape[:-1], y.shape[-1])


def _rounded(rows: Shaped[Tensor, "R C"]) -> Shaped[Tensor, "Q C"]:
    """The rows, and as many of zeros behind them as make their number a round one.

    For each number that it has not met oneDNN writes a program of its own first, and in a search that number changes
    from step to step: of 1,000 sentences' time that takes a seventh in bfloat16 with AMX, where a program takes 3 ms,
    and a fiftieth in 8 bits, which are soon copied. In float32 the copy takes what is won.
    """
    missing = -len(rows) % (1 << max(3, len(rows).bit_length() - 4))
    return F.pad(rows, (0, 0, 0, missing)) if missing else rows


def _as_it_is(x: Tensor) -> Tensor:
    return x


class Int8Linear(PackedLayer):
    """A linear layer with a weight of 8 bits, multiplied by rows of 8 bits; sums and output are in float32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        # Processors without instructions for it add two products in 16 bits, which 2 * 255 * 127 overflows.
        largest = 127 if cpu_has("avx512_vnni", "avx_vnni", "amx_int8") else 63
        scale = weight.abs().amax(1).clamp_min(_TINY) / largest
        codes = (weight / scale[:, None]).round().to(torch.int8)
        self._weight = torch.ops.onednn.qlinear_prepack(codes, None)
        self._scale = scale
        self._zero = torch.zeros_like(scale, dtype=torch.int32)
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        rows = x.detach().reshape(-1, x.shape[-1]).float()
        # Large tensors are written over where they may be: a new one for each operation takes longer (docs/log.md).
        scaled = rows.abs()
        largest = scaled.amax(-1, keepdim=True).clamp_min_(_TINY)
        torch.mul(rows, largest.reciprocal().mul_(127), out=scaled)
        # Zero at 128: processors multiply bytes without a sign by bytes with one.
        codes = _rounded(scaled.round_().to(torch.int8).view(torch.uint8).add_(128))
        y = torch.ops.onednn.qlinear_pointwise(
            codes, 1 / 127, 128, self._weight, self._scale, self._zero, None, 1.0, 0, torch.float32, "none", [], ""
        )[: len(rows)]
        y = y.mul_(largest) if self._bias is None else torch.addcmul(self._bias, y, largest, out=y)
        return y.view(*x.shape[:-1], len(self._scale))
