"""Images with a label for each pixel, of a user's folders: an image of class numbers, a mask, for each image."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import PIL.Image

from foveate.data.dataset import Dataset
from foveate.data.images.decoding import DamagedImage, read_image, turn_upright
from foveate.data.images.labelled import images_below
from foveate.data.images.mask_layouts import MASKED, UNLABELLED, MaskedFiles, check_sizes, read_mask
from foveate.data.layout import read_by
from foveate.data.text.files import Paths, as_paths, read_sentences
from foveate.errors import UserError
from foveate.special_tokens import IGNORE

IMAGES, MASKS, LABELS = "images", "masks", "labels.txt"
"""What a folder holds."""


@dataclass(frozen=True)
class MaskedImage:
    """An image whose pixels have labels."""

    place: str
    labels: tuple[str, ...]
    """The labels of the dataset: number n of a mask stands for label n."""
    read: Callable[[], PIL.Image.Image] = field(repr=False, compare=False)
    """Decodes the image. Raises UserError where it is damaged."""
    read_mask: Callable[[], np.ndarray] = field(repr=False, compare=False)
    """Decodes the numbers of the labels (h, w), IGNORE for pixels that have none."""
    identity: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)
    """Something shorter that stands for pixels and labels, if there is."""
    file: Path | None = field(default=None, repr=False, compare=False)
    """The file that `read` decodes, if there is one."""

    present: tuple[str, ...] = ()
    """The labels of its pixels, where they were counted."""

    def content(self) -> bytes:
        """The names of the labels, the mask and the pixels, if they can be read."""
        names = f"{self.labels}\0".encode()
        if self.identity is not None:
            return names + self.identity()
        pixels = b""
        with suppress(DamagedImage):
            pixels = self.read().tobytes()
        return names + self.read_mask().tobytes() + pixels


def masked_images(paths: Paths) -> Dataset[MaskedImage]:
    """A folder with images in `images`, and in `masks` a PNG file of the same name for each, whose pixels are class
    numbers, or entries of a palette; 255 is not a class. `labels.txt` has the name of each class, one a line from 0 on.

    Files of the layouts `MASKED` are read too.

    Raises UserError for anything else, and for masks of another size than their image.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"images with labelled pixels are one folder or one file; {len(paths)} were given")
    (path,) = paths
    listed = read_by(MASKED, path)
    files, masks, labels = _of_folder(path) if listed is None else listed
    if not files:
        raise UserError(f"{path}: there is no image in it")
    counts, present, damaged = np.zeros(UNLABELLED, np.int64), list[list[int]](), list[str]()
    readable = []
    for file, own_mask in zip(files, masks, strict=True):
        try:
            mask = own_mask()
        except DamagedImage as error:
            damaged.append(str(error))
            continue
        own = np.bincount(mask[mask != IGNORE], minlength=UNLABELLED)
        readable.append((file, own_mask))
        present.append(np.flatnonzero(own).tolist())
        counts += own
    if not readable:
        raise UserError(f"{path}: none of the {len(files):,} images can be read, the first because {damaged[0]}")
    most = int(np.flatnonzero(counts).max(initial=-1))
    labels = labels or _labels(path, most)
    if most >= len(labels):
        raise UserError(f"{path}: {len(labels)} classes have names, but the masks have class {most}")
    examples = [
        MaskedImage(str(file), labels, _reader(file), mask, file=file, present=tuple(labels[n] for n in own))
        for (file, mask), own in zip(readable, present, strict=True)
    ]
    shares = ", ".join(
        f"{name} {share:.1%}" for name, share in zip(labels, counts / max(1, counts.sum()), strict=False)
    )
    notes = [f"{len(labels)} labels: {shares}"]
    if damaged:
        notes.append(f"left out: {len(damaged):,} that cannot be read, the first because {damaged[0]}")
    return Dataset(path.name or str(path), examples, "images", notes)


def _of_folder(folder: Path) -> MaskedFiles:
    if not (folder / IMAGES).is_dir() or not (folder / MASKS).is_dir():
        raise UserError(f"images with labelled pixels are one folder with {IMAGES}/ and {MASKS}/ in it, not {folder}")
    files = images_below(folder / IMAGES)
    if not files:
        raise UserError(f"{folder / IMAGES}: there is no image in it")
    return MaskedFiles(files, [partial(read_mask, _mask_of(file, folder)) for file in files], ())


def _reader(file: Path) -> Callable[[], PIL.Image.Image]:
    return lambda: turn_upright(read_image(file))


def _mask_of(file: Path, folder: Path) -> Path:
    """The mask of an image. Raises UserError where there is none, or it has another size."""
    mask = folder / MASKS / file.relative_to(folder / IMAGES).with_suffix(".png")
    if not mask.is_file():
        raise UserError(f"{file} has no mask: there is no file {mask}")
    check_sizes(file, mask)
    return mask


def _labels(folder: Path, most: int) -> tuple[str, ...]:
    """The names of the classes up to number `most`, of the file that names them, or made up."""
    if most < 1:
        raise UserError(f"{folder / MASKS}: deciding takes two classes, but the masks have {most + 1}")
    if not (folder / LABELS).is_file():
        return tuple(f"class {number}" for number in range(most + 1))
    names: Sequence[str] = [line.strip() for line in read_sentences(folder / LABELS) if line.strip()]
    if len(names) <= most:
        raise UserError(f"{folder / LABELS} names {len(names)} classes, but the masks have class {most}")
    if len(set(names)) < len(names):
        raise UserError(f"{folder / LABELS} gives two classes the same name")
    return tuple(names)
