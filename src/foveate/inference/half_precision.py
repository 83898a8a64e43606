"""Linear layers with weights in half precision: a step of writing reads all weights, so half the bytes take less
time."""

import copy
from typing import Literal, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

Precision = Literal["float32", "float16", "bfloat16", "int8"]

Model = TypeVar("Model", bound=nn.Module)


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
    shared: dict[int, object] = {id(parameter): parameter for parameter in model.parameters()}
    found = copy.deepcopy(model, shared)
    for module in list(found.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, HalfLinear(child, dtype))
    return found.eval()
