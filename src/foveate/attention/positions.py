"""Positions as vectors."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Waves = Literal["interleaved", "halves", "tensor2tensor"]
"""The order and the lengths of the waves of `sinusoidal`."""


def sinusoidal(
    length: int,
    width: int,
    start: int = 0,
    device: torch.device | str | None = None,
    waves: Waves = "interleaved",
) -> Float[Tensor, "T D"]:
    """Sine and cosine waves, interleaved: `p[i, 2j] = sin(i / 10000^(2j/D))`, `p[i, 2j+1] = cos(same)`.

    (Vaswani et al. 2017.) Rows are the positions `start` to `start + length - 1`. There is no greatest length. Waves in
    "halves" are the same, first all sines, then all cosines. Those of "tensor2tensor" are in halves too, and the
    slowest has a wavelength of 20,000 pi, `sin(i / 10000^(j/(D/2-1)))`.
    """
    places = torch.arange(start, start + length, dtype=torch.float64, device=device)
    numbers = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    slowest = max(1, width - 2) if waves == "tensor2tensor" else width
    angles = places[:, None] * 10000.0 ** (-numbers / slowest)
    if waves == "interleaved":
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[:, :width]
    else:
        table = torch.cat([angles.sin(), angles.cos()], -1)[:, :width]
    return table.to(torch.get_default_dtype())


def sinusoidal_grid(
    rows: int, columns: int, width: int, device: torch.device | str | None = None, waves: Waves = "interleaved"
) -> Float[Tensor, "S D"]:
    """The waves of `sinusoidal` for the places of a grid, row by row: half of the width for the row, half for the
    column (Parmar et al. 2018, https://arxiv.org/abs/1802.05751)."""
    vertical = sinusoidal(rows, width // 2, device=device, waves=waves)
    horizontal = sinusoidal(columns, width - width // 2, device=device, waves=waves)
    both = vertical[:, None].expand(-1, columns, -1), horizontal[None].expand(rows, -1, -1)
    return torch.cat(both, -1).flatten(0, 1)
