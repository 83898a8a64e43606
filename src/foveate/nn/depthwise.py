"""Convolutions of each channel for itself, with a faster gradient of their weights on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

MOST_PLACES = 256
"""Places of the largest map whose gradient is computed by products of all places."""

IMAGES = 3
"""A map may have so many times as many places as there are images: with few images oneDNN is faster."""


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of each channel for itself over a map of equal size: `kernel` is odd, the border is zeros.

    In training on a CPU, oneDNN takes most of the time for the gradient of the weights. Where maps are small and images
    many, this gradient is a matrix product for each channel, of all input places with all output places over the
    images, summed along equal offsets. 128 images, 96 channels, 7 x 7 places and 7 x 7 weights take 2.6 ms in bfloat16
    instead of 17.
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__(width, width, kernel, padding=kernel // 2, groups=width)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        if not (self.training and torch.is_grad_enabled() and _pays(x)):
            return super().forward(x)
        if torch.is_autocast_enabled("cpu"):
            precision = torch.get_autocast_dtype("cpu")
            return _Depthwise.apply(x.to(precision), self.weight.to(precision), self._bias(precision))
        return _Depthwise.apply(x, self.weight, self.bias)

    def _bias(self, precision: torch.dtype) -> Tensor | None:
        return None if self.bias is None else self.bias.to(precision)


def _pays(x: Tensor) -> bool:
    """Whether products of all places are faster than oneDNN's gradient."""
    places = x.shape[2] * x.shape[3]
    return x.device.type == "cpu" and not torch.compiler.is_compiling() and places <= min(MOST_PLACES, IMAGES * len(x))


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # type: ignore[override]
        context.save_for_backward(x, weight)
        context.with_bias = bias is not None
        return F.conv2d(x, weight, bias, padding=weight.shape[-1] // 2, groups=len(weight))

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = context.saved_tensors
        wanted = context.needs_input_grad
        of_x = None
        if wanted[0]:
            padding = [weight.shape[-1] // 2] * 2
            of_x, _, _ = torch.ops.aten.convolution_backward(
                gradient, x, weight, None, [1, 1], padding, [1, 1], False, [0, 0], len(weight), [True, False, False]
            )
        of_weight = gradient_of_weights(x, gradient, weight.shape[-1]).to(weight.dtype) if wanted[1] else None
        of_bias = gradient.sum((0, 2, 3)) if context.with_bias and wanted[2] else None
        return of_x, of_weight, of_bias


def gradient_of_weights(
    x: Float[Tensor, "B C h w"], gradient: Float[Tensor, "B C h w"], kernel: int
) -> Float[Tensor, "C 1 k k"]:
    """The gradient of the weights, from the input and the gradient of the output."""
    _, channels, height, width = x.shape
    inputs = x.permute(1, 2, 3, 0).flatten(1, 2)
    outputs = gradient.permute(1, 0, 2, 3).flatten(2)
    products = torch.bmm(inputs, outputs).unflatten(2, (height, width)).unflatten(1, (height, width))
    found = torch.zeros(channels, 1, kernel, kernel, dtype=torch.promote_types(x.dtype, torch.float32))
    reach = kernel // 2
    for down in range(-min(reach, height - 1), min(reach, height - 1) + 1):
        # Rows of the input so far below those of the output: (C, w of the input, w of the output).
        rows = products.diagonal(-down, 1, 3).sum(-1, dtype=found.dtype)
        for along in range(-min(reach, width - 1), min(reach, width - 1) + 1):
            found[:, 0, reach + down, reach + along] = rows.diagonal(-along, 1, 2).sum(-1)
    return found
