"""What a user may get wrong with images of classes or with boxes, and the one line that says so."""

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foveate.cli import main

Fails = Callable[..., str]

QUICK = ("--steps", "1", "--threads", "1", "--average", "1", "--precision", "float32", "--warmup", "1")


def draw(path: Path, size: tuple[int, int] = (8, 8)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(str(path))).integers(0, 255, (size[1], size[0], 3), np.uint8)
    PIL.Image.fromarray(pixels).save(path)
    return path


def bomb(path: Path) -> Path:
    """A PNG file of 100 bytes that claims 3,600 million pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(99))), (b"IEND", b""))
    blocks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(blocks))
    return path


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each of two classes, with a damaged image and a bomb among the images of one of them."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    for label in "ab":
        for number in range(21):
            draw(folder / label / f"{number}.png")
    whole = (folder / "a/0.png").read_bytes()
    (folder / "a/half.png").write_bytes(whole[:-80])
    bomb(folder / "a/bomb.png")
    return folder


@pytest.fixture(scope="module")
def classifier(photos: Path) -> Path:
    out = photos.parent / "run"
    main(["train", "classify-image", "--data", str(photos), "--model", "cnn-tiny", *QUICK, "--out", str(out)])
    return out


def test_damaged_images_are_left_out_of_a_training(
    photos: Path, classifier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (classifier / "model.safetensors").is_file()
    out = photos.parent / "again"
    main(["train", "classify-image", "--data", str(photos), "--model", "cnn-tiny", *QUICK, "--out", str(out)])
    told = capsys.readouterr().err
    assert "bomb.png" in told
    assert "half.png" in told
    assert "cannot be read: " in told


def test_a_table_of_images(fails: Fails, photos: Path) -> None:
    table, out = photos.parent / "table.tsv", photos.parent / "none"
    for text, told in (
        ("photos/a/1.png\ta\nphotos/a/99.png\tb\n", "line 2: there is no file "),
        ("photos/a/1.png\ta\nphotos/a/1.png\tb\n", f"line 2: {photos / 'a/1.png'} has the label 'b', but 'a' before"),
        ("photos/a/1.png a\n", "line 1: 0 tabs, but a line must be path<TAB>label"),
    ):
        table.write_text(text)
        assert fails("train", "classify-image", "--data", table, "--out", out).startswith(f"{table}, {told}")
    assert not out.exists()


def test_classes(fails: Fails, photos: Path, classifier: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, out = photos.parent / "other", photos.parent / "none"
    for label in "ac":
        draw(other / label / "1.png")
    train = ("train", "classify-image", "--out", out, "--data")
    told = fails(*train, photos, "--validation", other)
    assert told == "other has the label 'c', which photos does not have"
    assert fails(*train, photos / "a", "--validation", other).startswith(f"{photos / 'a'} has no images: it needs one")
    one = photos.parent / "one"
    for number in range(21):
        draw(one / "a" / f"{number}.png")
    (one / "b").mkdir()
    assert fails(*train, one) == "one: every image has the label 'a'; deciding takes two labels"
    assert not out.exists()
    main(["eval", str(classifier), "--data", str(other)])
    assert "1 of 2 have labels that the model did not learn: c" in capsys.readouterr().out


def test_empty_folders_and_links_to_themselves(fails: Fails, photos: Path, classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "empty/a").mkdir(parents=True)
    (tmp_path / "loop").symlink_to("loop")
    for verb in (["train", "classify-image", "--out", tmp_path / "none", "--data"], ["eval", classifier, "--data"]):
        assert fails(*verb, tmp_path / "empty").startswith(f"{tmp_path / 'empty'} has no images")
        assert fails(*verb, tmp_path / "loop") == f"cannot read {tmp_path / 'loop'}: Too many levels of symbolic links"
    assert fails("run", classifier, tmp_path / "empty") == f"{tmp_path / 'empty'} has no images"
    assert "Too many levels of symbolic links" in fails("run", classifier, tmp_path / "loop")
    assert not (tmp_path / "none").exists()


def test_a_folder_that_holds_a_link_to_itself(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = draw(tmp_path / "deep/1.png")
    (tmp_path / "deep/up").symlink_to("..")
    main(["run", str(classifier), str(tmp_path)])
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [str(image)]


def test_images_to_classify(fails: Fails, classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = bomb(tmp_path / "bomb.png")
    told = f"{large} has more than 50,000,000 pixels: too many to decode"
    assert fails("run", classifier, large) == told
    assert fails("run", classifier, tmp_path / "gone.png") == f"there is no file {tmp_path / 'gone.png'}"
    assert fails("run", classifier, large, tmp_path / "gone.png") == f"there is no file {tmp_path / 'gone.png'}"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(classifier), str(large), str(draw(tmp_path / "tiny.png", (1, 1)))])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert told in err
    assert "tiny.png\t" in out


def test_images_that_are_smaller_than_a_patch(fails: Fails, photos: Path) -> None:
    train = ("train", "classify-image", "--data", photos, "--out", photos.parent / "none", *QUICK)
    assert fails(*train, "--model", "vit-tiny", "--size", "3") == "image_size 3 is not a multiple of patch 4: use 4"
    assert fails(*train, "--model", "convnext-small-images", "--size", "7").endswith(
        "images of 7 x 7 pixels are too small for this model: it needs 8 x 8"
    )
    assert not (photos.parent / "none").exists()


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A COCO file with a box outside of its image, one without area, and a damaged image."""
    folder = tmp_path_factory.mktemp("boxes")
    images = [{"id": number, "file_name": draw(folder / f"{number}.png", (40, 30)).name} for number in range(22)]
    (folder / "1.png").write_bytes((folder / "1.png").read_bytes()[:-80])
    extents = [[5, 5, 10, 10], [99, 99, 5, 5], [1, 1, 0, 5]]
    rows = [{"image_id": number, "category_id": 1, "bbox": extents[max(0, number - 19)]} for number in range(22)]
    table = {"images": images, "annotations": rows, "categories": [{"id": 1, "name": "x"}]}
    (folder / "all.json").write_text(json.dumps(table))
    return folder


def test_boxes(boxes: Path, fails: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    out = boxes / "run"
    sizes = [
        ("width", 16),
        ("heads", 2),
        ("feedforward", 16),
        ("encoder-layers", 1),
        ("decoder-layers", 1),
        ("queries", 5),
    ]
    small = [part for name, size in sizes for part in (f"--architecture.{name}", str(size))]
    table = str(boxes / "all.json")
    main(["train", "detect", "--data", table, "--size", "32", "--batch", "4", *small, *QUICK, "--out", str(out)])
    told = capsys.readouterr().err
    assert "left out: 2 boxes without an area in their image" in told
    assert f"left out: 1 image that cannot be read: {boxes / '1.png'}" in told
    main(["eval", str(out), "--data", table])
    assert f"left out: 1 image that cannot be read: {boxes / '1.png'}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", str(out), table])
    assert capsys.readouterr().err.endswith(f"cannot identify image file '{table}'\n")
    train = ("train", "detect", "--out", boxes / "none", "--data")
    (boxes / "cut.json").write_text("{")
    assert fails(*train, boxes / "cut.json").startswith(f"{boxes / 'cut.json'} is damaged: Expecting property name")
    text = (boxes / "all.json").read_text()
    (boxes / "other.json").write_text(text.replace('"name": "x"', '"name": "y"'))
    told = fails(*train, boxes / "all.json", "--validation", boxes / "other.json")
    assert told == "other.json has the class 'y', which all.json does not have"
    (boxes / "twice.json").write_text(text.replace('"file_name": "3.png"', '"file_name": "2.png"'))
    assert (
        fails(*train, boxes / "twice.json") == f"{boxes / 'twice.json'} lists 2 images with the file {boxes / '2.png'}"
    )
    assert not (boxes / "none").exists()


def test_damaged_images_to_complete(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = photos.parent / "pixels"
    sizes = ("--size", "3", "--levels", "2", "--architecture.width", "8", "--architecture.layers", "1")
    main(["train", "complete-image", "--data", str(photos), "--batch", "8", *sizes, *QUICK, "--out", str(out)])
    told = capsys.readouterr().err
    for name in ("bomb.png", "half.png"):
        assert f"{photos / 'a' / name}" in told
