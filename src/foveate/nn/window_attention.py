"""Self-attention within windows of a feature map."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from foveate.attention import ContinuousGridPosition, Cosine, RelativeGridPosition
from foveate.nn.attention import MultiHeadAttention

Size = tuple[int, int]


class WindowAttention(nn.Module):
    """Each place attends to the places of its window, a square of `window` rows and columns (Swin, Liu et al. 2021).

    The map is padded by zeros to whole windows at the right and the bottom. With a `shift`, it is rolled to the left
    and up, so that windows lie across the borders of those of another layer; places from opposite edges do not see each
    other. A side that is not longer than a window is one window, without shift. With `cosine`, scores are cosines and
    positions continuous (Swin V2, Liu et al. 2022), as those of windows of `trained_window` rows and columns were.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        window: int,
        shift: int = 0,
        dropout: float = 0.0,
        cosine: bool = False,
        trained_window: int | None = None,
    ) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        score = Cosine(heads) if cosine else None
        self.attention = MultiHeadAttention(width, heads, dropout=dropout, score=score, key_bias=not cosine)
        self.position: ContinuousGridPosition | RelativeGridPosition
        if cosine:
            self.position = ContinuousGridPosition(heads, trained_window)
        else:
            self.position = RelativeGridPosition(heads, window - 1)
            nn.init.normal_(self.position.table, std=0.02)

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B h w C"]:
        batch, height, width, _ = x.shape
        window, shift = self.layout(height, width)
        x = F.pad(x, (0, 0, 0, -width % window[1], 0, -height % window[0]))
        size = x.shape[1], x.shape[2]
        windows = into_windows(x.roll((-shift[0], -shift[1]), (1, 2)) if any(shift) else x, window)
        mask = _neighbours(size, window, shift, x.device).repeat(batch, 1, 1, 1) if any(shift) else None
        windows = self.attention(windows, mask=mask, bias=self.position.with_grids(window))
        x = from_windows(windows, window, size)
        x = x.roll(shift, (1, 2)) if any(shift) else x
        return x[:, :height, :width]

    def layout(self, height: int, width: int) -> tuple[Size, Size]:
        """Height and width of the windows of a map of this size, and by how much it is rolled up and to the left."""
        window = min(self.window, height), min(self.window, width)
        return window, (self.shift * (height > self.window), self.shift * (width > self.window))


def into_windows(x: Shaped[Tensor, "B h w C"], window: Size) -> Shaped[Tensor, "BN W C"]:
    """The windows of each map, row by row, as the rows of one batch."""
    return x.unflatten(2, (-1, window[1])).unflatten(1, (-1, window[0])).transpose(2, 3).flatten(3, 4).flatten(0, 2)


def from_windows(windows: Shaped[Tensor, "BN W C"], window: Size, size: Size) -> Shaped[Tensor, "B h w C"]:
    """The inverse of `into_windows`, for maps of this size."""
    grid = size[0] // window[0], size[1] // window[1]
    return windows.unflatten(1, window).unflatten(0, (-1, *grid)).transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _neighbours(size: Size, window: Size, shift: Size, device: torch.device) -> Bool[Tensor, "N 1 W W"]:
    """Finds which places of each window were on the same side of the edges before the map was rolled."""
    sides = (
        (torch.arange(length, device=device) >= length - by).long()  # places that come from the other edge
        for length, by in zip(size, shift, strict=True)
    )
    down, along = sides
    regions = into_windows((2 * down[:, None] + along)[None, ..., None], window)[..., 0]
    return (regions[:, :, None] == regions[:, None])[:, None]
