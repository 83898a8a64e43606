"""Where the numbers come from that a model reads of an image, whatever its processor does with the image."""

from collections.abc import Callable

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor

from foveate.tasks.hf.image_places import Origin, TokenGrid, find_regions, seen_part, trace_origin

PICTURE = np.random.default_rng(7).integers(0, 255, (24, 36, 3), np.uint8)

Prepare = Callable[[PIL.Image.Image], dict[str, Tensor]]


class Config:
    """A config without a word on images."""


def pixels(image: PIL.Image.Image, width: int, height: int) -> Tensor:
    """(3, height, width), not as bytes: an odd scale for each channel."""
    resized = np.asarray(image.resize((width, height), PIL.Image.Resampling.BILINEAR))
    scale = torch.tensor([3.0, -2.0, 0.5])[:, None, None]
    return torch.from_numpy(resized.copy()).permute(2, 0, 1) / 255 * scale - 0.7


def stretched(image: PIL.Image.Image) -> dict[str, Tensor]:
    return {"pixel_values": pixels(image, 12, 12)[None]}


def middle(image: PIL.Image.Image) -> dict[str, Tensor]:
    return {"pixel_values": pixels(image.crop((6, 0, 30, 24)), 12, 12)[None]}


def padded(image: PIL.Image.Image) -> dict[str, Tensor]:
    """Bars above and below, of the colour 0."""
    found = torch.zeros(1, 3, 12, 12)
    found[0, :, 2:10] = pixels(image, 12, 8)
    return {"pixel_values": found}


def tiles(image: PIL.Image.Image) -> dict[str, Tensor]:
    """The whole image, then tiles from the last to the first."""
    large = pixels(image, 18, 12)
    cut = [large[:, top : top + 6, left : left + 6] for top in (0, 6) for left in (0, 6, 12)]
    return {"pixel_values": torch.stack([pixels(image, 6, 6), *cut[::-1]])}


def patches(image: PIL.Image.Image) -> dict[str, Tensor]:
    """Patches of 2 x 2, column by column, in a row of numbers each."""
    large = pixels(image, 6, 4)
    cut = [large[:, top : top + 2, left : left + 2].flatten() for left in (0, 2, 4) for top in (0, 2)]
    return {"pixel_values": torch.stack(cut)}


def grids(prepare: Prepare, count: int, first: int = 0) -> list[TokenGrid]:
    return find_regions(range(first, first + count), trace_origin(prepare, PICTURE), Config())


def test_one_image() -> None:
    (found,) = grids(stretched, 16, first=5)
    assert found == ("image", tuple(range(5, 21)), 4, 4, (0.0, 0.0, 1.0, 1.0))
    (behind,) = grids(stretched, 17)
    assert behind.places == tuple(range(1, 17))


def test_the_middle_of_an_image() -> None:
    (found,) = grids(middle, 9)
    assert (found.rows, found.columns) == (3, 3)
    assert found.box == pytest.approx((1 / 6, 0.0, 5 / 6, 1.0), abs=0.005)
    assert np.array_equal(seen_part(PICTURE, found.box), PICTURE[:, 6:30])


def test_tokens_of_padding_are_left_out() -> None:
    (found,) = grids(padded, 36)
    assert (found.rows, found.columns) == (4, 6)
    assert found.places == tuple(range(6, 30))
    assert found.box == (0.0, 0.0, 1.0, 1.0)
    (coarse,) = grids(padded, 16)
    assert (coarse.rows, coarse.columns) == (4, 4)
    top, bottom = coarse.box[1], coarse.box[3]
    assert (top, bottom) == pytest.approx((-0.25, 1.25), abs=0.01)
    shown = seen_part(PICTURE, coarse.box)
    assert shown.shape == (36, 36, 3)
    assert np.array_equal(shown[6:30], PICTURE)
    assert not shown[:6].any()
    assert not shown[30:].any()


def test_tiles_in_any_order() -> None:
    image, overview = grids(tiles, 7 * 4)
    assert (image.rows, image.columns, overview.rows, overview.columns) == (4, 6, 2, 2)
    assert overview.places == (0, 1, 2, 3)
    assert image.places[:6] == (24, 25, 20, 21, 16, 17)
    assert image.places[-6:] == (14, 15, 10, 11, 6, 7)


def test_patches_in_any_order() -> None:
    (found,) = grids(patches, 6)
    assert (found.rows, found.columns) == (2, 3)
    assert found.places == (0, 2, 4, 1, 3, 5)
    (merged,) = grids(patches, 3)
    assert (merged.rows, merged.columns) == (1, 3)


@pytest.mark.parametrize("count", [8, 15, 18, 32])
def test_tokens_that_are_no_squares_have_no_grid(count: int) -> None:
    assert grids(stretched, count) == []


def test_without_a_trace_there_is_no_grid() -> None:
    def blind(image: PIL.Image.Image) -> dict[str, Tensor]:
        return {"pixel_values": torch.ones(1, 3, 12, 12)}

    def changing(image: PIL.Image.Image) -> dict[str, Tensor]:
        return {"pixel_values": torch.ones(1, 3, 12, 12 + image.getpixel((0, 0))[0] % 2)}

    assert trace_origin(blind, PICTURE) is None
    assert trace_origin(changing, PICTURE) is None
    assert trace_origin(lambda image: {"tokens": torch.ones(1, 3)}, PICTURE) is None
    assert find_regions(range(16), None, Config()) == []
    everywhere = Origin(np.zeros((1, 12, 12)), np.zeros((1, 12, 12)))
    assert find_regions(range(16), everywhere, Config()) == []
