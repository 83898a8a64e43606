"""The hybrid encoder of RT-DETR: attention within the coarsest feature map, convolutions between all of them.

Zhao et al. 2023, https://arxiv.org/abs/2304.08069, section 4.2.

B batch    C width    h, w rows and columns of a map
"""

from collections.abc import Iterable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveate.attention import sinusoidal_grid
from foveate.nn.blocks import TransformerBlock
from foveate.nn.convolution import ConvNorm

layer = partial(ConvNorm, activation=F.silu)
"""A convolution of a width, an outer width, a kernel and a stride, batch norm and SiLU."""


class RepVGGBlock(nn.Module):
    """The sum of a 3x3 and a 1x1 convolution (Ding et al. 2021, https://arxiv.org/abs/2101.03697)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide, self.narrow = layer(width, width, 3, activation=None), layer(width, width, 1, activation=None)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        return F.silu(self.wide(x) + self.narrow(x))


class Fusion(nn.Module):
    """Joins two maps of one size: three RepVGG blocks beside a shortcut (CSP, Wang et al. 2020,
    https://arxiv.org/abs/1911.11929)."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.main, self.shortcut = layer(2 * width, inner, 1), layer(2 * width, inner, 1)
        self.blocks = nn.Sequential(*(RepVGGBlock(inner) for _ in range(3)))
        self.output = nn.Identity() if inner == width else layer(inner, width, 1)

    def forward(self, one: Float[Tensor, "B C h w"], other: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        both = torch.cat([one, other], 1)
        return self.output(self.blocks(self.main(both)) + self.shortcut(both))


class HybridEncoder(nn.Module):
    """Attention between the places of the coarsest map; then what is known goes to the finest map, and back."""

    def __init__(self, blocks: Iterable[TransformerBlock], width: int, inner: int, levels: int) -> None:
        """`inner` is the width of the blocks that join two maps."""
        super().__init__()
        self.blocks, steps = nn.ModuleList(blocks), range(levels - 1)
        self.lateral = nn.ModuleList(layer(width, width, 1) for _ in steps)
        self.down = nn.ModuleList(Fusion(width, inner) for _ in steps)
        self.shrink = nn.ModuleList(layer(width, width, 3, 2) for _ in steps)
        self.up = nn.ModuleList(Fusion(width, inner) for _ in steps)

    def forward(
        self, maps: Sequence[Float[Tensor, "B C _ _"]], inside: Bool[Tensor, "B h w"]
    ) -> list[Float[Tensor, "B C _ _"]]:
        """The maps, from the finest to the coarsest. `inside` is False where the coarsest one is padding."""
        finest_last = [self._attend(maps[-1], inside)]
        for lateral, fuse, finer in zip(self.lateral, self.down, reversed(maps[:-1]), strict=True):
            finest_last[-1] = lateral(finest_last[-1])
            larger = F.interpolate(finest_last[-1], finer.shape[2:], mode="nearest")
            finest_last.append(fuse(larger, finer))
        found = [finest_last.pop()]
        for shrink, fuse in zip(self.shrink, self.up, strict=True):
            coarser = finest_last.pop()
            rows, columns = coarser.shape[2:]  # some backbones cut a last odd row or column
            found.append(fuse(shrink(found[-1])[..., :rows, :columns], coarser))
        return found

    def _attend(self, grid: Float[Tensor, "B C h w"], inside: Bool[Tensor, "B h w"]) -> Float[Tensor, "B C h w"]:
        x, mask = grid.flatten(2).mT, inside.flatten(1)[:, None, None]
        width, rows, columns = grid.shape[1:]
        positions = sinusoidal_grid(rows, columns, width, x.device, waves="halves").to(x.dtype)
        for block in self.blocks:
            x = block(x, mask=mask, positions=positions)
        return x.mT.unflatten(2, (rows, columns))
