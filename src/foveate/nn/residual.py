"""The residual path around a layer: its norm, and what is done to the layer's output before the sum."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import one_of
from foveate.nn.dropout import Dropout, StochasticDepth
from foveate.nn.norms import Norm


class Residual(nn.Module):
    """`norm(x + f(x))` (post-norm, Vaswani et al. 2017), `x + f(norm(x))` (pre-norm, Xiong et al. 2020) or
    `x + norm(f(x))` (res-post-norm, Liu et al. 2022, https://arxiv.org/abs/2111.09883).

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
        """`norm` is "post", "pre" or "res-post"; `layer_scale` is the scale that training begins with."""
        super().__init__()
        one_of("norm", norm, ("post", "pre", "res-post"))
        self.norm = make_norm(width)
        self.norm_first, self.norm_branch = norm == "pre", norm == "res-post"
        self.dropout = Dropout(dropout)
        self.scale = None if layer_scale is None else nn.Parameter(torch.full((width,), layer_scale))
        self.depth = StochasticDepth(depth_dropout) if depth_dropout else None

    def forward(self, x: Float[Tensor, "*places C"], layer: Callable[[Tensor], Tensor]) -> Float[Tensor, "*places C"]:
        if self.norm_first:
            return x + self.branch(x, layer)
        if self.norm_branch:
            return x + self._finish(self.norm(layer(x)))
        return self.norm(x + self._finish(layer(x)))

    def branch(self, x: Float[Tensor, "*places C"], layer: Callable[[Tensor], Tensor]) -> Float[Tensor, "*places C"]:
        """Computes what pre-norm adds to x: the layer of the normalized x."""
        return self._finish(layer(self.norm(x)))

    def _finish(self, y: Tensor) -> Tensor:
        y = self.dropout(y)
        if self.scale is not None:
            y = y * self.scale
        return y if self.depth is None else self.depth(y)
