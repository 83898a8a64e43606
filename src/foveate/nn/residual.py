"""The residual path around a layer: its norm, and what is done to the layer's output before the sum."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import one_of
from foveate.nn.dropout import Dropout, StochasticDepth
from foveate.nn.norms import Norm

PLACES = ("post", "pre", "output", "sandwich")
"""Where the norm is: of the sum, of the layer's input, of its output, or of its input and of its output."""


class Residual(nn.Module):
    """`norm(x + f(x))` (post-norm, Vaswani et al. 2017), `x + f(norm(x))` (pre-norm, Xiong et al. 2020),
    `x + norm(f(x))` (output norm: Swin V2, Liu et al. 2022) or `x + norm(f(norm(x)))` (sandwich: Gemma 2, 2024).

    f's output passes dropout, then, where they are asked for, a learned scale for each channel (LayerScale, Touvron et
    al. 2021, https://arxiv.org/abs/2103.17239) and stochastic depth.
    """

    def __init__(
        self,
        width: int,
        norm: str,
        dropout: float,
        make_norm: Norm = nn.LayerNorm,
        layer_scale: float | None = None,
        depth_dropout: float = 0.0,
    ) -> None:
        """`norm` is one of `PLACES`; `layer_scale` is the scale that training begins with."""
        super().__init__()
        one_of("norm", norm, PLACES)
        self.place = norm
        self.norm = make_norm(width)
        self.last_norm = make_norm(width) if norm == "sandwich" else None
        self.dropout = Dropout(dropout)
        self.scale = None if layer_scale is None else nn.Parameter(torch.full((width,), layer_scale))
        self.depth = StochasticDepth(depth_dropout) if depth_dropout else None

    def forward(self, x: Float[Tensor, "*places C"], layer: Callable[[Tensor], Tensor]) -> Float[Tensor, "*places C"]:
        if self.place == "post":
            return self.norm(x + self._finish(layer(x)))
        return x + self.branch(x, layer)

    def branch(self, x: Float[Tensor, "*places C"], layer: Callable[[Tensor], Tensor]) -> Float[Tensor, "*places C"]:
        """Computes what is added to x, with the norms before and after the layer."""
        y = self.norm(layer(x)) if self.place == "output" else layer(self.norm(x))
        return self._finish(y if self.last_norm is None else self.last_norm(y))

    def _finish(self, y: Tensor) -> Tensor:
        y = self.dropout(y)
        if self.scale is not None:
            y = y * self.scale
        return y if self.depth is None else self.depth(y)
