"""How pixels are standardised: the mean and the deviation of each channel."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from torch import Tensor

from foveate.data.images.pixels import normalize
from foveate.errors import UserError

Channels = tuple[float, ...]


@dataclass
class StandardPixels:
    """A form whose images become numbers around 0."""

    pixel_mean: Channels | None = field(default=None, kw_only=True)
    """What is subtracted from each channel of pixels from 0 to 1. By default 0.5, or what a Hugging Face folder says
    that the training begins from."""
    pixel_deviation: Channels | None = field(default=None, kw_only=True)
    """What each channel is then divided by. By default 0.25, or what that folder says."""

    def check_standard(self) -> None:
        """Raise UserError for numbers that cannot be."""
        mean, deviation = self.pixel_mean, self.pixel_deviation
        if (mean is None) != (deviation is None):
            raise UserError("--pixel-mean and --pixel-deviation belong together: give both")
        if mean is None or deviation is None:
            return
        if len(mean) not in (1, 3) or len(mean) != len(deviation) or not all(deviation):
            numbers = f"{list(mean)} and {list(deviation)}"
            raise UserError(f"pixel_mean and pixel_deviation are {numbers}, but must be one number each, or three")

    def standardise(self, pixels: np.ndarray) -> Float[Tensor, "B C h w"]:
        """8-bit pixels (B, C, h, w) as numbers."""
        if self.pixel_mean is None or self.pixel_deviation is None:
            return normalize(pixels)
        return normalize(pixels, self.pixel_mean, self.pixel_deviation)
