"""Images that their metadata turn, by every reader that knows where something is in them, in every format that has
such metadata."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from PIL.Image import Transpose

from foveate.data.images.boxes import boxed_images
from foveate.data.images.decoding import TRANSPOSE_BY_ORIENTATION, read_image, read_sizes, turn_upright
from foveate.data.images.keypoints import posed_images
from foveate.data.images.word_images import word_images
from foveate.errors import UserError
from foveate.forms.reading import WordLine

FORMATS: dict[str, dict[str, Any]] = {
    "jpg": {"quality": 95},
    "png": {},
    "webp": {"lossless": True},
    "tif": {},
    "tiff": {"compression": "tiff_lzw"},
}

BACK = {Transpose.ROTATE_90: Transpose.ROTATE_270, Transpose.ROTATE_270: Transpose.ROTATE_90}


def save_turned(upright: PIL.Image.Image, orientation: int, path: Path, **options: Any) -> Path:
    """A file that looks like `upright` once it is turned as its metadata say."""
    turn = TRANSPOSE_BY_ORIENTATION.get(orientation)
    stored = upright if turn is None else upright.transpose(BACK.get(turn, turn))
    exif = stored.getexif()
    exif[0x0112] = orientation
    stored.save(path, exif=exif, **options)
    return path


def picture(width: int, height: int) -> PIL.Image.Image:
    """White with a black corner at the top left."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    pixels[: height // 4, : width // 4] = 0
    return PIL.Image.fromarray(pixels)


def has_corner(image: PIL.Image.Image) -> bool:
    pixels = np.asarray(image.convert("L")) < 128
    return bool(pixels[: image.height // 5, : image.width // 5].all()) and pixels.mean() < 0.1


def coco(folder: Path, image: Path, size: tuple[int, int]) -> Path:
    shape = {"bbox": [0, 0, 10, 7], "keypoints": [10, 7, 2], "image_id": 1, "category_id": 1}
    table = {
        "images": [{"id": 1, "file_name": image.name, "width": size[0], "height": size[1]}],
        "annotations": [shape],
        "categories": [{"id": 1, "name": "corner", "keypoints": ["end"]}],
    }
    (folder / "all.json").write_text(json.dumps(table))
    return folder / "all.json"


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", FORMATS)
def test_annotations_of_the_upright_image(ending: str, orientation: int, tmp_path: Path) -> None:
    path = save_turned(picture(40, 30), orientation, tmp_path / f"a.{ending}", **FORMATS[ending])
    assert read_sizes(path) == (read_image(path).size, (40, 30))
    upright = turn_upright(read_image(path))
    assert has_corner(upright)
    assert turn_upright(upright).size == upright.size
    assert has_corner(turn_upright(upright))
    for read in (boxed_images, posed_images):
        (example,) = read(coco(tmp_path, path, (40, 30)))
        assert example.read().size == (40, 30)
        assert has_corner(example.read())


@pytest.mark.parametrize("read", [boxed_images, posed_images])
def test_annotations_of_the_image_as_it_is_stored(read: Any, tmp_path: Path) -> None:
    """They are of the pixels before these are turned; those of TIFF nobody reads so."""
    path = save_turned(picture(40, 30), 6, tmp_path / "a.jpg", quality=95)
    (example,) = read(coco(tmp_path, path, (30, 40)))
    assert example.read().size == (30, 40)
    assert turn_upright(example.read()).size == (30, 40)
    with pytest.raises(UserError, match=r"has 40 x 30 pixels, but its annotation says 30 x 40"):
        read(coco(tmp_path, save_turned(picture(40, 30), 6, tmp_path / "a.tif"), (30, 40)))


@pytest.mark.parametrize("orientation", [1, 6, 8])
@pytest.mark.parametrize("ending", FORMATS)
def test_a_turned_line_of_text_is_read_as_it_looks(ending: str, orientation: int, tmp_path: Path) -> None:
    """Stored, it is too tall for a line."""
    path = save_turned(picture(400, 40), orientation, tmp_path / f"a.{ending}", **FORMATS[ending])
    (tmp_path / "labels.tsv").write_text(f"{path.name}\ttext\n")
    (example,) = word_images(tmp_path)
    form = WordLine(height=32, width=400)
    for value in (example.read(), form.open(str(path))):
        prepared = form.prepare(value)
        assert (prepared.pixels.shape, prepared.squeezed) == ((32, 320), False)
        assert prepared.pixels[:6, :60].max() < prepared.pixels[20:, 100:].min()
