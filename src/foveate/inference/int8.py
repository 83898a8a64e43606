"""Linear layers with weights of 8 bits: a quarter of the bytes that a step of writing reads."""

import warnings

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.inference.linear_layers import Model, with_linear_layers
from foveate.inference.packed import LinearProduct, PackedLayer

LARGEST = 127
"""The largest of the whole numbers that stand for a row of weights, from its negative."""


class Int8Linear(PackedLayer, LinearProduct):
    """A linear layer with a scale for each row of weights and, at each call, for each row of the input; products are
    sums of whole numbers. Input and output are of single precision."""

    depends_on_batch = True
    """Whether a row of the output depends on the other rows of the input, by more than the order of sums."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = (weight.abs().amax(1) / LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():  # PyTorch will give these types up, and has no faster product on a CPU yet
            warnings.simplefilter("ignore")
            rows = torch.quantize_per_channel(weight, scale.double(), zeros, 0, torch.qint8)
        self.bias = linear.bias
        self._packed = torch.ops.quantized.linear_prepack(rows, None)
        self._reduced = not _sums_are_exact()

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        if x.numel() == x.shape[-1]:  # the product itself finds the scale of all its input
            found = torch.ops.quantized.linear_dynamic(x.contiguous(), self._packed, self._reduced)
        else:
            # Tokens differ by orders of size, and the product has one scale for all of them.
            size = x.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
            found = torch.ops.quantized.linear_dynamic((x / size).contiguous(), self._packed, self._reduced) * size
        return found if self.bias is None else found + self.bias


def in_int8(model: Model) -> Model:
    """A copy whose linear layers have weights of 8 bits; all other weights are shared with the model.

    Raises UserError for a model that is not on the CPU.
    """
    if any(parameter.device.type != "cpu" for parameter in model.parameters()):
        raise UserError("int8 is for models on the CPU; on a GPU, use float16 or bfloat16")
    return with_linear_layers(model, Int8Linear)


def _sums_are_exact() -> bool:
    """Returns whether the CPU sums products of 8 bits in 32; older ones use 16, which overflow unless inputs have 7
    bits."""
    supported = getattr(torch.cpu, "_is_vnni_supported", None)
    return bool(supported and supported())
