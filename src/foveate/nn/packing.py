"""Linear layers laid out for running a trained model on a CPU, in full precision or with weights of eight bits.

torch multiplies by a weight as training keeps it, row after row. For the few rows of a decoding step, oneDNN is faster
with a weight that was laid out in its own blocks beforehand, and faster still with one of whole numbers.
"""

import copy
from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.contracts import UserError
from foveate.nn.attention import MultiHeadAttention, heads_of
from foveate.nn.blocks import DecoderBlock, EncoderBlock

Precision = Literal["float32", "int8"]

_LEAST = 2**16
"""Weights with fewer numbers stay as they are: a call of oneDNN takes longer than the product."""

_TINY = 1e-30
"""Keeps a row of zeros from being divided by zero."""


def packed(model: nn.Module, precision: Precision = "float32") -> nn.Module:
    """A copy of a model that runs faster on a CPU and cannot learn; all but its large linear layers is shared.

    The queries, keys and values of a block's self-attention become one product. With "float32" it computes the same
    sums in another order. "int8" rounds the weights of a linear layer to 8 bits, with a scale for each output, and what
    they are multiplied by to 8 bits, with a scale for each row. Where torch has no oneDNN for x86, and on a GPU, the
    model itself is returned; UserError if eight bits were asked for.
    """
    if not _served(model):
        if precision != "float32":
            raise UserError(f"precision {precision} needs an x86 CPU and torch with oneDNN; use float32 here")
        return model
    shared: dict[int, Any] = {id(part): part for part in (*model.parameters(), *model.buffers())}
    model = copy.deepcopy(model, shared)
    layer: Callable[[nn.Linear], nn.Module] = PackedLinear if precision == "float32" else Int8Linear
    for block in model.modules():
        if isinstance(block, (EncoderBlock, DecoderBlock)) and isinstance(block.self.query, nn.Linear):
            block.self = JointSelfAttention(block.self)
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Linear and child.weight.numel() >= _LEAST and child.weight.dtype == torch.float32:
                setattr(module, name, layer(child))
    return model


def _served(model: nn.Module) -> bool:
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    return on_cpu and torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")


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

    def _all_of(self, x: Float[Tensor, "B T C"]) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self.joint(x).split(self.widths, -1)
        return heads_of(queries, self.head_width), heads_of(keys, self.head_width), heads_of(values, self.value_width)

    def _keys_values(self, source: Float[Tensor, "B S C"]) -> tuple[Tensor, Tensor]:
        return self._all_of(source)[1:]


class PackedLinear(nn.Module):
    """A linear layer whose weight lies in oneDNN's blocks."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        # Of an input in half precision, as autocast makes, oneDNN would want such a weight.
        return torch.ops.mkldnn._linear_pointwise(x.float(), self._weight, self._bias, "none", [], "")


class Int8Linear(nn.Module):
    """A linear layer with a weight of 8 bits, multiplied by rows of 8 bits; sums and output are exact numbers."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scale = weight.abs().amax(1).clamp_min(_TINY) / 127
        codes = (weight / scale[:, None]).round().to(torch.int8)
        self._weight = torch.ops.onednn.qlinear_prepack(codes, None)
        self._scale = scale
        self._zero = torch.zeros_like(scale, dtype=torch.int32)
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        largest = x.abs().amax(-1, keepdim=True).clamp_min_(_TINY)
        # Zero at 128: processors multiply bytes without a sign by bytes with one.
        codes = (x * largest.reciprocal().mul_(127)).round_().to(torch.int8).view(torch.uint8).add_(128)
        y = torch.ops.onednn.qlinear_pointwise(
            codes, 1 / 127, 128, self._weight, self._scale, self._zero, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return y.mul_(largest) if self._bias is None else torch.addcmul(self._bias, y, largest)
