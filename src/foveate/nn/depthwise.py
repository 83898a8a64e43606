"""Convolutions of each channel for itself, whose gradients take less time on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

MOST_PLACES = 256
"""Places of the largest map whose gradient is computed by products of all places."""

IMAGES = 3
"""A map may have this many times as many places as there are images: with few images oneDNN is faster."""

FAST_KERNEL = 3
"""Rows and columns of the weights whose gradient oneDNN computes fast in every precision."""


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of each channel for itself over a map of equal size: `kernel` is odd, the border is zeros."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__(width, width, kernel, padding=kernel // 2, groups=width)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        return depthwise(x, self.weight, self.bias, padding=self.kernel_size[0] // 2)


def depthwise(
    x: Float[Tensor, "B C h w"],
    weight: Float[Tensor, "C 1 k k"],
    bias: Float[Tensor, "C"] | None = None,
    stride: int = 1,
    padding: int = 0,
) -> Float[Tensor, "B C i j"]:
    """`F.conv2d` of each channel for itself.

    On a CPU, oneDNN takes most of a training's time for two gradients. That of large kernels' weights is computed by
    products, where maps are small and images many: 128 images, 96 channels, 7 x 7 places and 7 x 7 weights take 2.6 ms
    in bfloat16 instead of 17. In bfloat16 it is otherwise computed in float32, as is that of the input with a stride:
    a fifth to a thirtieth of the time.
    """
    if not torch.is_grad_enabled() or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.conv2d(x, weight, bias, stride, padding, groups=len(weight))
    if torch.is_autocast_enabled("cpu"):
        precision = torch.get_autocast_dtype("cpu")
        x, weight, bias = x.to(precision), weight.to(precision), None if bias is None else bias.to(precision)
    return _Depthwise.apply(x, weight, bias, stride, padding)  # type: ignore[no-untyped-call]


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int) -> Tensor:
        context.save_for_backward(x, weight)
        context.stride, context.padding, context.with_bias = stride, padding, bias is not None
        return F.conv2d(x, weight, bias, stride, padding, groups=len(weight))

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = context.saved_tensors
        stride, padding = context.stride, context.padding
        large = weight.shape[-1] > FAST_KERNEL
        of_x = of_weight = of_bias = None
        if context.needs_input_grad[0]:
            of_x = _by_onednn(x, weight, gradient, stride, padding, single=stride > 1)
        if context.needs_input_grad[1]:
            of_weight = (
                gradient_of_weights(x, gradient, weight.shape[-1]).to(weight.dtype)
                if large and gradient.shape == x.shape and _many(x)
                else _by_onednn(x, weight, gradient, stride, padding, single=large, of_weight=True)
            )
        if context.with_bias and context.needs_input_grad[2]:
            of_bias = gradient.sum((0, 2, 3))
        return of_x, of_weight, of_bias, None, None


def _many(x: Tensor) -> bool:
    """Returns whether there are enough images for the products of all places."""
    return x.shape[2] * x.shape[3] <= min(MOST_PLACES, IMAGES * len(x))


def _by_onednn(
    x: Tensor, weight: Tensor, gradient: Tensor, stride: int, padding: int, single: bool, of_weight: bool = False
) -> Tensor:
    """The gradient of the input or of the weights, computed in `single` precision if they have half."""
    precision = weight.dtype
    given = [part.float() if single and precision == torch.bfloat16 else part for part in (gradient, x, weight)]
    found = torch.ops.aten.convolution_backward(
        *given, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], len(weight), [not of_weight, of_weight, False]
    )
    return found[int(of_weight)].to(precision)


def gradient_of_weights(
    x: Float[Tensor, "B C h w"], gradient: Float[Tensor, "B C h w"], kernel: int
) -> Float[Tensor, "C 1 k k"]:
    """The gradient of the weights, from the input and the gradient of an output of the same size.

    For each channel it is a product of all input places with all output places, over the images, summed along equal
    offsets.
    """
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
