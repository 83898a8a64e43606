"""Linear layers with weights in half precision: a step of writing reads all weights, so half the bytes take less
time."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.inference.linear_layers import Model, with_linear_layers


class HalfLinear(nn.Module):
    """A linear layer whose products are of half precision; its input and output stay as they are."""

    weight: Tensor

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("weight", linear.weight.detach().to(dtype), persistent=False)
        self.bias = linear.bias

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... P"]:
        found = F.linear(x.to(self.weight.dtype), self.weight).to(x.dtype)
        return found if self.bias is None else found + self.bias


def in_half_precision(model: Model, dtype: torch.dtype) -> Model:
    """A copy whose linear layers have half precision; all other weights are shared with the model.

    Norms, attention and sums between layers stay in single precision.
    """
    return with_linear_layers(model, lambda linear: HalfLinear(linear, dtype))
