"""Labelled images: what is read, what is left out, and what is said about what cannot be read."""

import os
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.images import decoded as decoded_images
from foveate.data.images.augmentation import augment, erase, recolour
from foveate.data.images.decoded import decode
from foveate.data.images.decoding import DamagedImage, read_image, read_sizes, turn_upright
from foveate.data.images.labelled import ImageFormat, LabelledImage, labelled_images, report_damaged
from foveate.data.images.pixels import choose_format, normalize
from foveate.errors import UserError
from foveate.forms.image import AugmentedImage
from foveate.forms.label import Label
from foveate.forms.processor import Processor


def draw(path: Path, colour: object = (255, 0, 0), size: tuple[int, int] = (11, 7), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new(mode, size, colour).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        draw(tmp_path / "shop/red" / f"{number}.png")
        draw(tmp_path / "shop/blue/deep" / f"{number}.png", (0, 0, 255))
    (tmp_path / "shop/red/readme.txt").write_text("no image")
    return tmp_path / "shop"


def test_class_folders(folder: Path) -> None:
    images = labelled_images([folder])
    assert [one.label for one in images] == ["blue"] * 3 + ["red"] * 3
    assert images.report == "shop: 6 images (3 blue, 3 red)"
    assert choose_format(images, None) == ImageFormat(64, 3)
    assert choose_format(images, 5) == ImageFormat(5, 3)


def test_a_table_has_paths_relative_to_its_folder(folder: Path) -> None:
    table = folder / "table.tsv"
    table.write_text("red/0.png\tr\n\nblue/deep/2.png\tb\n")
    assert [(Path(one.place).name, one.label) for one in labelled_images([table])] == [
        ("0.png", "r"),
        ("2.png", "b"),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("red/9.png\tr", "line 1: there is no file"),
        ("red/0.png r", "line 1: 0 tabs, but a line must be path<TAB>label"),
        ("red/0.png\tr\nred/0.png\tr\nred/0.png\tb", "line 3: .*0.png has the label 'b', but 'r' before"),
    ],
)
def test_a_damaged_table(folder: Path, line: str, told: str) -> None:
    (folder / "table.tsv").write_text(line)
    with pytest.raises(UserError, match=told):
        labelled_images([folder / "table.tsv"])


def test_no_images(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs one folder for each class"):
        labelled_images([tmp_path])


def test_held_out_images_are_in_no_other_part(folder: Path) -> None:
    learn, check = labelled_images([folder]).hold_out(3, kinds=lambda one: (one.label,))
    places = [[one.place for one in part] for part in (learn, check)]
    assert not set(places[0]) & set(places[1])
    assert len(places[0]) + len(places[1]) == 6
    assert {one.label for one in learn} == {"blue", "red"}


def test_pixels_of_every_kind_of_image(tmp_path: Path) -> None:
    form = ImageFormat(5, 3)
    red = np.array([255, 0, 0], np.uint8)[:, None, None] * np.ones((1, 5, 5), np.uint8)
    assert np.array_equal(form.pixels(PIL.Image.new("RGB", (11, 7), "red")), red)
    assert np.array_equal(form.pixels(PIL.Image.new("RGBA", (5, 5), (255, 0, 0, 0))), np.full((3, 5, 5), 255))
    assert np.array_equal(form.pixels(PIL.Image.new("CMYK", (5, 9), (0, 255, 255, 0))), red)
    palette = PIL.Image.new("RGB", (5, 5), "red").convert("P", palette=PIL.Image.Palette.ADAPTIVE)
    assert np.abs(form.pixels(palette).astype(int) - red).max() <= 1
    deep = PIL.Image.fromarray(np.full((5, 5), 17 * 257, np.uint16))
    for image in (deep, deep.convert("I"), PIL.Image.new("LA", (5, 5), (17, 255))):
        assert np.array_equal(form.pixels(image), np.full((3, 5, 5), 17))
    grey = ImageFormat(5, 1).pixels(PIL.Image.new("L", (5, 5), 17))
    assert np.array_equal(grey, np.full((1, 5, 5), 17))


def test_rotation_in_the_metadata_is_applied(tmp_path: Path) -> None:
    image = PIL.Image.new("L", (3, 3))
    image.putpixel((0, 0), 255)
    exif = image.getexif()
    exif[0x0112] = 6  # to be turned clockwise by 90 degrees
    image.save(tmp_path / "turned.png", exif=exif)
    assert ImageFormat(3, 1).pixels(read_image(tmp_path / "turned.png"))[0, 0].tolist() == [0, 0, 255]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("metadata", [b"Exif\0\0no TIFF", b"Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x63"])
def test_damaged_metadata_turn_nothing(tmp_path: Path, metadata: bytes) -> None:
    PIL.Image.new("L", (5, 3), 77).save(tmp_path / "odd.webp", lossless=True, exif=metadata)
    assert read_sizes(tmp_path / "odd.webp") == ((5, 3), (5, 3))
    assert ImageFormat(3, 1).pixels(read_image(tmp_path / "odd.webp"))[0, 1].tolist() == [77, 77, 77]


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(UserError, match=r"a\.png cannot be read as an image"):
        read_image(tmp_path / "a.png")
    with pytest.raises(UserError, match="there is no file"):
        read_image(tmp_path / "b.png")
    PIL.Image.new("1", (10_000, 5_001)).save(tmp_path / "large.png")
    with pytest.raises(UserError, match="10,000 x 5,001 pixels: too many"):
        read_image(tmp_path / "large.png")


def processor_of(form: ImageFormat, **settings: Any) -> Processor:
    return Processor(AugmentedImage(format=form, **settings), Label({"blue": 3, "red": 3}))


def test_damaged_images_are_left_out_and_named(folder: Path) -> None:
    half = (folder / "red/1.png").read_bytes()[:-30]
    (folder / "red/1.png").write_bytes(half)
    (folder / "blue/b.png").write_text("no image")
    images = labelled_images([folder])
    assert choose_format(images, None) == ImageFormat(64, 3)
    processor = processor_of(ImageFormat(7, 3), augment=False)
    batches = BucketedBatches(OneBucket(images, processor), 9, seed=1)
    names = [str(folder / name) for name in ("blue/b.png", "red/1.png")]
    assert batches.report == f"left out: 2 images that cannot be read: {', '.join(names)}"
    (batch,) = batches.in_order()
    assert batch.labels.flatten().tolist() == [0, 0, 0, 1, 1]
    assert (batch.inputs["pixels"][:, 2, 3, 3] < 0).long().tolist() == batch.labels[:, 0].tolist()
    for file in folder.rglob("*.png"):
        file.write_bytes(half)
    with pytest.raises(UserError, match="image file is truncated"):
        OneBucket(images, processor)


def test_many_damaged_images_are_counted() -> None:
    examples = [LabelledImage(f"{number}.png", "a", lambda: PIL.Image.new("L", (1, 1))) for number in range(12)]
    assert report_damaged(examples).endswith(
        "12 images that cannot be read: " + ", ".join(f"{n}.png" for n in range(10)) + " and 2 more"
    )
    assert report_damaged([]) == ""


def test_images_of_16_bits_are_grey_and_others_are_refused(tmp_path: Path) -> None:
    for label, value in (("a", 0), ("b", 2**16 - 1)):
        (tmp_path / label).mkdir()
        PIL.Image.fromarray(np.full((7, 7), value, np.uint16)).save(tmp_path / label / "deep.png")
    images = labelled_images([tmp_path])
    assert choose_format(images, None) == ImageFormat(7, 1)
    assert decode(images, ImageFormat(7, 1))[:, 0, 3, 3].tolist() == [0, 255]
    PIL.Image.new("LAB", (5, 5)).save(tmp_path / "odd.tif")
    with pytest.raises(DamagedImage, match=r"odd\.tif has pixels of a kind that is not read: save it with 8 or 16"):
        read_image(tmp_path / "odd.tif")


def test_a_jpeg_of_a_thousand_scans(tmp_path: Path) -> None:
    path = draw(tmp_path / "a.jpg")
    PIL.Image.new("RGB", (64, 64)).save(path, progressive=True)
    data = path.read_bytes()
    assert read_image(path).size == (64, 64)
    last = data[data.rfind(b"\xff\xda") : -2]
    path.write_bytes(data[:-2] + 1_000 * last + data[-2:])
    with pytest.raises(DamagedImage, match=r"a.jpg has more than 100 scans, which would take long to decode"):
        read_image(path)
    path.write_bytes(data + 1_000 * last)  # what follows the image, such as a film, is not decoded
    assert read_image(path).size == (64, 64)


def test_metadata_that_are_damaged_say_nothing(tmp_path: Path) -> None:
    for metadata in (b"II*\0\xff\xff\xff\xff", b"nothing", b"II*\0\x08\0\0\0\xff\xff" + b"\x12\x01" * 99):
        path = tmp_path / "a.jpg"
        PIL.Image.new("RGB", (11, 7)).save(path, exif=b"Exif\0\0" + metadata)
        assert turn_upright(read_image(path)).size == (11, 7)
        assert read_sizes(path) == ((11, 7), (11, 7))


def test_files_that_are_no_images_are_not_read(tmp_path: Path) -> None:
    """Pipes, and what claims to be larger than any image."""
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(UserError, match=r"could not read .*pipe.png: it is not a regular file"):
        read_image(tmp_path / "pipe.png")
    with (tmp_path / "sparse.png").open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(UserError, match=r"sparse.png has 1,024 MiB; the limit is 512 MiB"):
        read_image(tmp_path / "sparse.png")


def test_a_label_that_is_not_utf8(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path / "shop") + b"/caf\xe9"
    try:
        os.makedirs(place)
    except OSError:
        pytest.skip("this disk has no such names")
    draw(tmp_path / "a.png").rename(os.fsdecode(place) + "/a.png")
    with pytest.raises(UserError, match=r"the text 'caf.udce9' is not UTF-8"):
        labelled_images(tmp_path / "shop")


def test_a_format_that_pillow_gives_to_a_program_is_refused(tmp_path: Path) -> None:
    PIL.Image.new("L", (5, 5)).save(tmp_path / "a.eps")
    (tmp_path / "a.eps").rename(tmp_path / "a.png")
    with pytest.raises(UserError, match=r"a\.png cannot be read as an image: cannot identify image file"):
        read_image(tmp_path / "a.png")


def test_sizes_and_colours_that_decide_end_the_search(folder: Path) -> None:
    draw(folder / "blue/a.png", size=(3, 3))
    (folder / "red/2.png").write_bytes(b"no image")  # never read: two sizes and a colour came before it
    assert choose_format(labelled_images([folder]), None) == ImageFormat(64, 3)


def test_another_image_is_another_digest(folder: Path) -> None:
    before = labelled_images([folder]).digest()
    assert labelled_images([folder]).digest() == before
    draw(folder / "red/1.png", (254, 0, 0))
    assert labelled_images([folder]).digest() != before


def test_an_epoch_has_each_image_once_and_repeats(folder: Path) -> None:
    images = labelled_images([folder])
    batches = BucketedBatches(OneBucket(images, processor_of(ImageFormat(7, 3))), 4, seed=1)
    epoch = list(batches.epoch(0))
    assert [len(batch.labels) for batch in epoch] == [4, 2] == [4, *[2] * (length_hint(batches) - 1)]
    assert sorted(int(label) for batch in epoch for label in batch.labels) == [0, 0, 0, 1, 1, 1]
    for batch in epoch:  # each image still is of the colour of its label
        assert (batch.inputs["pixels"][:, 2, 3, 3] < 0).long().tolist() == batch.labels[:, 0].tolist()
    again = next(iter(batches.epoch(0, skip=1)))
    assert again.inputs["pixels"].equal(epoch[1].inputs["pixels"])
    assert again.inputs["pixels"].shape == (2, 3, 7, 7)


def test_augmented_images_are_moved_and_flipped() -> None:
    pixels = np.arange(16 * 16, dtype=np.uint8).reshape(1, 1, 16, 16).repeat(64, 0)
    found = augment(pixels, 0.125, np.random.default_rng(0))
    rows, columns = found[:, 0, 8, 8] // 16, found[:, 0, 8, 8] % 16
    assert set((rows - 8).tolist()) <= {*range(3), 254, 255}
    assert len({*columns.tolist()}) > 5  # moved by -2 to 2, of a column or of its mirror image
    assert not np.array_equal(found, pixels)


def test_pixels_become_numbers_around_zero() -> None:
    found = normalize(np.array([0, 255], np.uint8).reshape(1, 2, 1, 1))
    assert found.flatten().tolist() == [-2, 2]


def test_images_that_take_too_much_memory(folder: Path) -> None:
    with pytest.raises(UserError, match="6 images take 11 GB at size 25000: lower --size"):
        decode(labelled_images([folder]), ImageFormat(25_000, 3))


def test_image_files_are_decoded_once_into_a_mapped_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = decode(labelled_images([folder]), ImageFormat(5, 3))
    monkeypatch.setattr(decoded_images, "SMALLEST", 0)
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    cached = tmp_path / "cache" / decoded_images.FOLDER
    first = decode(labelled_images([folder]), ImageFormat(5, 3))
    assert np.array_equal(first, expected)
    assert isinstance(first, np.memmap)
    assert not first.flags.writeable
    monkeypatch.setattr(ImageFormat, "pixels", lambda *_: pytest.fail("decoded again"))
    assert np.array_equal(decode(labelled_images([folder]), ImageFormat(5, 3)), expected)
    monkeypatch.undo()
    monkeypatch.setattr(decoded_images, "SMALLEST", 0)
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    decode(labelled_images([folder]), ImageFormat(3, 3))
    assert len([*cached.iterdir()]) == 2
    file = next(folder.rglob("*.png"))
    PIL.Image.new("RGB", (5, 5), "green").save(file)
    assert not np.array_equal(decode(labelled_images([folder]), ImageFormat(5, 3)), expected)
    assert len([*cached.iterdir()]) == 3


def test_more_than_the_disk_has_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded_images, "SMALLEST", 0)
    with pytest.raises(UserError, match=r"images take 1\d+\.\d GB at size 1000000, but .* has only .* GB left: lower"):
        decode(labelled_images([folder]), ImageFormat(1_000_000, 3))


def test_colours_change_within_a_share_and_rectangles_are_erased() -> None:
    pixels = np.full((50, 3, 20, 17), 100, np.uint8)
    pixels[:, 0] = 120
    found = recolour(pixels, 0.2, np.random.default_rng(0))
    assert found.dtype == np.uint8
    assert found.min() >= 100 * 0.8 - 5
    assert found.max() <= 120 * 1.2 + 5
    assert len(np.unique(found[:, 1].mean((1, 2)).round())) > 20
    assert np.array_equal(recolour(pixels, 0.2, np.random.default_rng(0)), found)
    erased = (erase(pixels, 0.5, np.random.default_rng(0)) != pixels).any(1)
    areas = erased.mean((1, 2))
    assert 10 < (areas > 0).sum() < 40
    assert areas.max() < 0.36
    (rows, columns), number = (np.flatnonzero(erased[areas.argmax()].any(axis)) for axis in (1, 0)), areas.argmax()
    assert len(rows) == rows[-1] - rows[0] + 1
    assert erased[number].sum() >= 0.9 * len(rows) * len(columns)


def test_what_changes_a_batch_comes_from_its_generator(folder: Path) -> None:
    processor = processor_of(ImageFormat(5, 3), colour=0.3, erase=1.0, operations=2, mixup=0.2)
    prepared = processor.prepare(labelled_images([folder]))
    first, again, plain = (
        processor.batch(list(prepared), generator).inputs["pixels"]
        for generator in (np.random.default_rng(1), np.random.default_rng(1), None)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, plain)
