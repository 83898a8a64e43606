"""The two sides of a map, queries and keys: tokens of a text, patches of an image, or times of a sound."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
import torch

from foveate.errors import MOST, UserError, of_kind, whole_number
from foveate.sight.layouts import Windows
from foveate.sight.site_patterns import value_for

MAX_SIDE = 1024
"""Maximum size of a picture in a page, in pixels of its longer side; larger pictures are scaled down."""

KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""First bytes of the picture formats that a page may contain: browsers run no code in them."""


@dataclass(frozen=True)
class Image:
    """A picture that the model reads as a grid of patches, row by row, after tokens that are not patches."""

    data: bytes
    """PNG or JPEG."""
    height: int
    """Number of patches from top to bottom."""
    width: int
    """Number of patches from left to right."""
    before: Sequence[str] = ()
    """Names of the tokens before the first patch, such as ["[CLS]"]."""

    @classmethod
    def of(cls, pixels: Any, height: int, width: int, before: Sequence[str] = ()) -> "Image":
        """Make one from an array or tensor (H, W), (H, W, 3) or (3, H, W).

        Bytes are used as they are. Other numbers are scaled from their range to 0..255, which suits standardised input.
        """
        pixels = np.asarray(pixels.detach().cpu().float() if isinstance(pixels, torch.Tensor) else pixels)
        if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
            pixels = pixels.transpose(1, 2, 0)
        if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3)) or not pixels.size:
            raise UserError(
                f"an array of shape {pixels.shape} is not a picture; expected (H, W), (H, W, 3) or (3, H, W)"
            )
        return cls(_png(pixels), height, width, before)


@dataclass(frozen=True)
class Audio:
    """A sound as a picture of its spectrogram. The positions divide its time, from left to right, into equal parts."""

    data: bytes
    """PNG or JPEG."""
    seconds: float
    """Duration."""
    before: Sequence[str] = ()
    """Names of the tokens before the sound."""
    heard: float = 1.0
    """The share of a model's positions that are the sound: behind them are those of padding, which are not shown."""

    @classmethod
    def of(cls, spectrogram: Any, seconds: float, before: Sequence[str] = (), padded: float | None = None) -> "Audio":
        """Make one from an array or tensor (frequencies, frames), the lowest frequency first.

        `padded` is the time that the spectrogram has with padding behind it, which is cut off.
        """
        values = spectrogram.detach().cpu().float() if isinstance(spectrogram, torch.Tensor) else spectrogram
        values = np.asarray(values)
        if values.ndim != 2 or not values.size:
            raise UserError(f"an array of shape {values.shape} is not a spectrogram; expected (frequencies, frames)")
        heard = 1.0 if padded is None else min(1.0, seconds / padded)
        values = values[:, : math.ceil(heard * values.shape[1])]
        return cls(_png(values[::-1], keep_ratio=False), seconds, before, heard)


@dataclass(frozen=True)
class Side:
    """The queries or the keys of a map."""

    count: int
    labels: Sequence[str] = ()
    """Names of the first positions, or of all; others are named by their patch or time, or by their number."""
    picture: Image | Audio | None = None


SideNames: TypeAlias = Sequence[str] | Image | Audio | None
"""What a user may give to name the positions of a side; None if it is not known."""

SidePair: TypeAlias = SideNames | tuple[SideNames, SideNames]
"""The names for both sides, or a tuple (queries, keys)."""


def check_example(example: int, count: int) -> None:
    """Raise UserError for what is none of the examples of a batch."""
    if not 0 <= whole_number("example", example, least=-MOST) < count:
        raise UserError(f"there is no example {example} among {count}: they count from 0")


def make_sides(
    given: SidePair | Mapping[str, SidePair],
    name: str,
    queries: int,
    keys: int,
    windows: tuple[Windows, Windows] | None = None,
) -> tuple[Side, Side]:
    """Returns the sides of the map of site `name`, with these numbers of queries and keys.

    In a mapping the first pattern that matches the site's name counts. Raises UserError if the numbers differ, and for
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
                f"{name} has windows in {patches[0]} x {patches[1]} patches, but the image has "
                f"{image.height} x {image.width}"
            )
    return over, along


def _side(given: SideNames, name: str, which: str, count: int) -> Side:
    if given is None:
        return Side(count)
    if isinstance(given, str):
        raise UserError(f"the tokens of {name} are one text, {given[:20]!r}; pass a list with a text for each token")
    if isinstance(given, Image):
        found = len(given.before) + given.height * given.width
        what = f"{given.height} x {given.width} patches and {len(given.before)} tokens before them"
    elif isinstance(given, Audio):
        found, what = max(count, len(given.before)), f"{len(given.before)} tokens before the sound"
    else:
        of_kind((Sequence, np.ndarray), f"the tokens of {name}", given, "a list of texts, an Image or an Audio")
        found, what = len(given), f"{len(given)} tokens"
    if found != count:
        raise UserError(
            f"{name} has {count} {which}, but {what} were given; if its two sides differ, pass a tuple (queries, "
            'keys); if sites differ, a mapping such as {"encoder*": [...], "*cross*": ([...], [...])}'
        )
    if isinstance(given, Image | Audio):
        picture_type(given.data)
        before = tuple(given.before)
        return Side(count, before, replace(given, before=before))
    return Side(count, tuple(given))


def picture_type(data: bytes) -> str:
    """The media type of a picture. Raises UserError for one that a page may not contain."""
    for beginning, kind in KINDS.items():
        if data.startswith(beginning):
            return kind
    raise UserError(f"a picture must be a PNG or JPEG file, but this one begins with {data[:8]!r}")


def _png(values: np.ndarray, keep_ratio: bool = True) -> bytes:
    """Encode a picture, scaled down to at most `MAX_SIDE` pixels on either side."""
    if values.dtype != np.uint8:
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise UserError("the picture has values that are not finite")
        least, greatest = values.min(), values.max()
        values = ((values - least) * (255 / max(greatest - least, 1e-12))).round().astype(np.uint8)
    picture = PIL.Image.fromarray(values.squeeze(-1) if values.ndim == 3 and values.shape[2] == 1 else values)
    if keep_ratio:
        picture.thumbnail((MAX_SIDE, MAX_SIDE))
    elif max(picture.size) > MAX_SIDE:
        picture = picture.resize((min(picture.width, MAX_SIDE), min(picture.height, MAX_SIDE)))
    file = BytesIO()
    picture.save(file, "png", optimize=True)
    return file.getvalue()
