"""What forms share whose data are images: the range of values of more than 8 bits."""

from dataclasses import dataclass, field
from typing import Any

from foveate.data.dataset import Dataset
from foveate.data.images.decoding import PixelRange, check_pixel_range
from foveate.data.images.ranged import with_range
from foveate.errors import UserError


@dataclass
class RangedPixels:
    """A form whose examples have images."""

    pixel_range: PixelRange | None = field(default=None, kw_only=True)
    """Values of 16-bit and floating-point pixels that become black and white: 0 4095 for 12 bits. By default what the
    file says, or 0 65535."""

    def of_files(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """Examples of a user's files, with images of this range."""
        check_pixel_range(self.pixel_range)
        return with_range(dataset, self.pixel_range)


def use_pixel_range(skill: Any, pixel_range: PixelRange | None) -> None:
    """Have a model in use read images of another range than those of its training. Raises UserError where it reads
    none."""
    if pixel_range is None:
        return
    check_pixel_range(pixel_range)
    reads = skill.processor.reads
    if not isinstance(reads, RangedPixels):
        raise UserError("--pixel-range is for models that read images")
    reads.pixel_range = pixel_range
