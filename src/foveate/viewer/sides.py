"""What stands at the two sides of a map: the tokens of a text, the patches of an image, the moments of a sound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
import torch

from foveate.errors import UserError
from foveate.sight.layouts import Windows
from foveate.sight.site_patterns import value_for

LARGEST = 1024
"""Pixels of a picture's longer side in a page; larger pictures are made smaller."""

KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""How the pictures begin that a page takes: browsers draw them and run nothing in them."""


@dataclass(frozen=True)
class Image:
    """A picture that the model saw as a grid of patches, read row by row, after tokens that are no patch."""

    data: bytes
    """PNG or JPEG."""
    height: int
    """Patches from top to bottom."""
    width: int
    """Patches from left to right."""
    before: Sequence[str] = ()
    """What comes before the first patch, such as ["[CLS]"]."""

    @classmethod
    def of(cls, pixels: Any, height: int, width: int, before: Sequence[str] = ()) -> "Image":
        """From an array or tensor (H, W), (H, W, 3) or (3, H, W) of numbers: bytes as they are, others from their
        least to their greatest, so that what a model was given, standardised, looks as it should."""
        pixels = np.asarray(pixels.detach().cpu().float() if isinstance(pixels, torch.Tensor) else pixels)
        if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
            pixels = pixels.transpose(1, 2, 0)
        if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3)) or not pixels.size:
            raise UserError(f"an array of shape {pixels.shape} is no picture; give (H, W), (H, W, 3) or (3, H, W)")
        return cls(_png(pixels), height, width, before)


@dataclass(frozen=True)
class Audio:
    """A sound as the picture of its spectrogram, whose time, from left to right, the positions share evenly."""

    data: bytes
    """PNG or JPEG."""
    seconds: float
    """How long it is."""
    before: Sequence[str] = ()
    """What comes before the first moment."""

    @classmethod
    def of(cls, spectrogram: Any, seconds: float, before: Sequence[str] = ()) -> "Audio":
        """From an array or tensor (frequencies, frames), the lowest frequency first."""
        values = spectrogram.detach().cpu().float() if isinstance(spectrogram, torch.Tensor) else spectrogram
        values = np.asarray(values)
        if values.ndim != 2 or not values.size:
            raise UserError(f"an array of shape {values.shape} is no spectrogram; give (frequencies, frames)")
        return cls(_png(values[::-1], alike=False), seconds, before)


@dataclass(frozen=True)
class Side:
    """The queries or the keys of a map."""

    count: int
    labels: Sequence[str] = ()
    """Of the first of them, or of all; others are called by their place in the picture, or by their number."""
    picture: Image | Audio | None = None


Given: TypeAlias = Sequence[str] | Image | Audio | None
"""How a user says what a side is; None where it is not known."""

Pair: TypeAlias = Given | tuple[Given, Given]
"""One for both sides, or a tuple of queries and keys."""


def sides(
    given: Pair | Mapping[str, Pair],
    name: str,
    queries: int,
    keys: int,
    windows: tuple[Windows, Windows] | None = None,
) -> tuple[Side, Side]:
    """The sides of the map of the site `name`, which has so many queries and keys, perhaps in windows of a picture.

    Of a mapping the first pattern that fits the site's name counts. Raises UserError where the numbers differ, and for
    an image whose patches are not those of the windows.
    """
    if isinstance(given, Mapping):
        given = value_for(name, given)
    two = isinstance(given, tuple) and len(given) == 2 and not all(isinstance(part, str) for part in given)
    pair = given if two else (given, given)
    over, along = _side(pair[0], name, "queries", queries), _side(pair[1], name, "keys", keys)  # type: ignore[index, arg-type]
    for side, layout in zip((over, along), windows or (), strict=False):
        image, patches = side.picture, (layout.height, layout.width)
        if isinstance(image, Image) and (image.height, image.width) != patches:
            raise UserError(
                f"{name} has windows in {patches[0]} x {patches[1]} patches, but the image that was given has "
                f"{image.height} x {image.width}"
            )
    return over, along


def _side(given: Given, name: str, which: str, count: int) -> Side:
    if given is None:
        return Side(count)
    if isinstance(given, str):
        raise UserError(f"the tokens of {name} are one text, {given[:20]!r}; give a list with a text for each token")
    if isinstance(given, Image):
        found = len(given.before) + given.height * given.width
        what = f"{given.height} x {given.width} patches and {len(given.before)} tokens before them"
    elif isinstance(given, Audio):
        found, what = max(count, len(given.before)), f"{len(given.before)} tokens before the sound"
    else:
        found, what = len(given), f"{len(given)} tokens"
    if found != count:
        raise UserError(
            f"{name} has {count} {which}, but {what} were given; where its two sides differ give a tuple (queries, "
            'keys), where sites differ a mapping such as {"encoder*": [...], "*cross*": ([...], [...])}'
        )
    if isinstance(given, Image | Audio):
        picture_type(given.data)
        before = tuple(given.before)
        return Side(count, before, replace(given, before=before))
    return Side(count, tuple(given))


def picture_type(data: bytes) -> str:
    """The media type of a picture. Raises UserError for one that a page does not take."""
    for beginning, kind in KINDS.items():
        if data.startswith(beginning):
            return kind
    raise UserError(f"a picture is a PNG or a JPEG file, but this begins with {data[:8]!r}")


def _png(values: np.ndarray, alike: bool = True) -> bytes:
    """A picture of at most `LARGEST` pixels on either side; made smaller, both are so alike or each for itself."""
    if values.dtype != np.uint8:
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise UserError("the picture holds numbers that are not finite")
        least, greatest = values.min(), values.max()
        values = ((values - least) * (255 / max(greatest - least, 1e-12))).round().astype(np.uint8)
    picture = PIL.Image.fromarray(values.squeeze(-1) if values.ndim == 3 and values.shape[2] == 1 else values)
    if alike:
        picture.thumbnail((LARGEST, LARGEST))
    elif max(picture.size) > LARGEST:
        picture = picture.resize((min(picture.width, LARGEST), min(picture.height, LARGEST)))
    file = BytesIO()
    picture.save(file, "png", optimize=True)
    return file.getvalue()
