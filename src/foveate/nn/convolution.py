"""Convolutions: over the positions of a sequence, and over images with batch norm."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.nn.depthwise import depthwise
from foveate.nn.dropout import StochasticDepth

Activation = Callable[[Tensor], Tensor]


class GatedConvolution(nn.Module):
    """A convolution to twice the width, one half of which gates the other (Dauphin et al. 2017): C -> 2 C -> C.

    It does not pad: the input has `kernel - 1` more vectors than the output. So one module processes a whole sequence
    as well as a single step with its past.
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        # A matrix product with windows of the input, for a whole sequence and for a step.
        self.linear = nn.Linear(kernel * width, 2 * width)

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B T C"]:
        length = x.shape[1] - self.kernel + 1
        windows = torch.cat([x[:, start : start + length] for start in range(self.kernel)], -1)
        return F.glu(self.linear(windows), -1)


class ConvNorm(nn.Module):
    """A convolution over images, batch norm (Ioffe and Szegedy 2015) and an activation: C -> D channels.

    The image is padded by zeros, so that its size is that of the input, divided by the stride and rounded up. `kernel`
    is odd.
    """

    def __init__(
        self,
        width: int,
        outer: int,
        kernel: int,
        stride: int = 1,
        activation: Activation | None = F.relu,
        groups: int = 1,
        eps: float = 1e-5,
        convolution: type[nn.Conv2d] = nn.Conv2d,
    ) -> None:
        super().__init__()
        # Batch norm subtracts the mean, so a bias before it would change nothing.
        self.convolution = convolution(width, outer, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outer, eps)
        self.activation = activation

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B D i j"]:
        x = self.norm(self.convolution(x))
        return x if self.activation is None else self.activation(x)


class SamePaddedConv2d(nn.Conv2d):
    """A convolution that pads as TensorFlow does with "SAME".

    The size of the output is that of the input, divided by the stride and rounded up. The padding is divided evenly
    between both ends; where it is odd, the right and the bottom get one more.
    """

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B D i j"]:
        rows, columns = (
            max(kernel - (size - 1) % stride - 1, 0)
            for size, kernel, stride in zip(x.shape[2:], self.kernel_size, self.stride, strict=True)
        )
        padding = int(self.padding[0])
        if (rows, columns) != (2 * padding, 2 * padding):
            x, padding = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)), 0
        if self.groups == self.in_channels == self.out_channels:
            return depthwise(x, self.weight, self.bias, self.stride[0], padding)
        return F.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class ChannelNorm(nn.LayerNorm):
    """Layer norm of the channels of each place of a feature map."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__(width, eps)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ResponseNorm(nn.Module):
    """Divides each channel by how active the five channels around it are (Krizhevsky et al. 2012, section 3.3)."""

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        activity = F.pad(x.square(), (0, 0, 0, 0, 2, 2)).unfold(1, 5, 1).sum(-1)
        return x / (2 + 1e-4 * activity) ** 0.75


class ResidualBlock(nn.Module):
    """`activation(shortcut(x) + branch(x))` (He et al. 2016), with stochastic depth; x itself without a shortcut."""

    def __init__(
        self,
        branch: nn.Module,
        shortcut: nn.Module | None = None,
        activation: Activation | None = None,
        depth_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut
        self.activation = activation
        self.depth = StochasticDepth(depth_dropout)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B D i j"]:
        y = (x if self.shortcut is None else self.shortcut(x)) + self.depth(self.branch(x))
        return y if self.activation is None else self.activation(y)
