"""Linear layers with weights in half precision: a step of writing reads all weights, so half the bytes take less
time."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.inference.linear_layers import Model, with_linear_layers
from foveate.inference.packed import LinearProduct, PackedLinear


class HalfLinear(LinearProduct):
    """A linear layer whose products are of half precision; its input and output stay as they are."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.bias = dtype, linear.bias
        product = nn.Linear(linear.in_features, linear.out_features, bias=False, device="meta")  # its weight is below
        product.weight = nn.Parameter(linear.weight.detach().to(dtype), requires_grad=False)
        self.product = PackedLinear(product) if _can_be_packed(product.weight) else product

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        found = self.product(x.to(self.dtype)).to(x.dtype)
        return found if self.bias is None else found + self.bias


def in_half_precision(model: Model, dtype: torch.dtype) -> Model:
    """A copy whose linear layers have half precision; all other weights are shared with the model. On a CPU it cannot
    be saved.

    Norms, attention and sums between layers stay in single precision.
    """
    return with_linear_layers(model, lambda linear: HalfLinear(linear, dtype))


def _can_be_packed(weight: Tensor) -> bool:
    """Returns whether oneDNN multiplies with this type here: its own layout takes less time."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    half = weight.dtype == torch.float16
    return torch.ops.mkldnn._is_mkldnn_fp16_supported() if half else torch.ops.mkldnn._is_mkldnn_bf16_supported()
