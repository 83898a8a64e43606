"""Examples whose images are read with a range of values that the user gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import PIL.Image

from foveate.data.dataset import Dataset
from foveate.data.images.decoding import PixelRange, Shrink, in_8_bits, read_shrunk


@dataclass(frozen=True)
class RangedReader:
    """Decodes an image, and brings values of more than 8 bits to 8."""

    read: Callable[[], PIL.Image.Image]
    pixel_range: PixelRange

    def __call__(self) -> PIL.Image.Image:
        return in_8_bits(self.read(), self.pixel_range)

    def shrunk(self, shrink: Shrink) -> PIL.Image.Image:
        """As `FileReader` does it."""
        return in_8_bits(read_shrunk(self.read, shrink), self.pixel_range)


class _Ranged(Sequence[Any]):
    """Examples that are given another reader when they are asked for."""

    def __init__(self, examples: Sequence[Any], pixel_range: PixelRange) -> None:
        self._examples, self._pixel_range = examples, pixel_range

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, number: int) -> Any: ...

    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...

    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        example = self._examples[number]
        return replace(example, read=RangedReader(example.read, self._pixel_range))


def with_range(dataset: Dataset[Any], pixel_range: PixelRange | None) -> Dataset[Any]:
    """The examples, whose images have this range of values; as they are for None."""
    if pixel_range is None:
        return dataset
    return Dataset(dataset.name, _Ranged(dataset.examples, pixel_range), dataset.unit, dataset.notes, dataset.lines)


def range_of(images: Dataset[Any]) -> PixelRange | None:
    """The range that `with_range` gave the examples."""
    found: PixelRange | None = getattr(images[0].read, "pixel_range", None)
    return found
