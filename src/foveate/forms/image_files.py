"""The images that arguments of `foveate run` name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ReadableImage, images_below, is_damaged, report_damaged
from foveate.errors import UserError

Image = TypeVar("Image", bound=ReadableImage)


def image_files(places: Sequence[str]) -> list[str]:
    """Files as they are, and all images below folders. Raises UserError for a folder without any."""
    found: list[str] = []
    for place in places:
        if not place or not Path(place).is_dir():
            found.append(place)
            continue
        if not (files := images_below(Path(place))):
            raise UserError(f"{place} has no images")
        found += map(str, files)
    return found


def without_damaged(images: Dataset[Image]) -> Dataset[Image]:
    """The examples whose images can be decoded; a note of the dataset names the others.

    Raises UserError where no image can be decoded.
    """
    damaged = [example for example in images if is_damaged(example)]
    if not damaged:
        return images
    if len(damaged) == len(images):
        raise UserError(f"{images.name}: none of the {len(images):,} images can be read")
    left_out = {id(example) for example in damaged}
    kept = [number for number, example in enumerate(images) if id(example) not in left_out]
    return images.only(kept, report_damaged(damaged))
