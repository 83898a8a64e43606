"""Images with boxes from COCO JSON and Pascal VOC, and what is wrong with them; how they become tensors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from foveate.contracts import IGNORE, Batch
from foveate.data.dataset import Dataset
from foveate.data.images.boxes import BoxedImage, boxed_images
from foveate.data.images.voc import CROWD, DIFFICULT, MarkedObject
from foveate.errors import UserError
from foveate.forms.boxes import Boxes, BoxesAnswer
from foveate.forms.image import FittedImage
from foveate.forms.processor import Processor
from foveate.metrics.detection import ScoredBoxes


def voc(name: str, *objects: tuple[str, int, int, int, int]) -> str:
    things = "".join(
        f"<object><name>{label}</name><bndbox><xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax>"
        f"<ymax>{bottom}</ymax></bndbox></object>"
        for label, left, top, right, bottom in objects
    )
    size = "<size><width>40</width><height>30</height></size>"
    return f"<annotation><filename>{name}</filename>{size}{things}</annotation>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images of 40 x 30 with annotations in a folder of their own."""
    for part in ("images", "annotations"):
        (tmp_path / part).mkdir()
    for name in ("a", "b"):
        PIL.Image.new("RGB", (40, 30), "red").save(tmp_path / "images" / f"{name}.png")
    (tmp_path / "annotations/a.xml").write_text(voc("a.png", ("cell", 1, 1, 10, 20), ("cell", 31, 11, 99, 99)))
    (tmp_path / "annotations/b.xml").write_text(voc("b.png", ("plate", 5, 5, 4, 9)))
    return tmp_path


def coco(folder: Path) -> dict[str, Any]:
    return {
        "images": [
            {"id": 7, "file_name": "a.png", "width": 40, "height": 30},
            {"id": 3, "file_name": "b.png"},
        ],
        "categories": [{"id": 90, "name": "cell"}, {"id": 2, "name": "plate"}],
        "annotations": [
            {"image_id": 7, "category_id": 90, "bbox": [0, 0, 10, 20]},
            {"image_id": 3, "category_id": 2, "bbox": [-5, 20, 15, 20]},
            {"image_id": 3, "category_id": 2, "bbox": [50, 20, 15, 20]},
            {"image_id": 3, "category_id": 2, "bbox": [0, 0, 9, 9], "iscrowd": 1},
        ],
    }


def test_pascal_voc(folder: Path) -> None:
    """Pixels count from 1, and the last ones are inside; boxes end at the border."""
    found = boxed_images([folder])
    assert [example.boxes for example in found] == [((0, 0, 10, 20), (30, 10, 40, 30)), ()]
    assert found[0].labels == ("cell", "cell")
    assert found[1].read().size == (40, 30)
    assert found.report.endswith("2 images (2 objects of 1 classes; left out: 1 boxes without an area in their image)")


def test_coco(folder: Path) -> None:
    (folder / "all.json").write_text(json.dumps(coco(folder)))
    found = boxed_images([folder / "all.json"])
    assert [(Path(example.place).name, example.boxes, example.labels) for example in found] == [
        ("a.png", ((0, 0, 10, 20),), ("cell",)),
        ("b.png", ((0, 20, 10, 30),), ("plate",)),
    ]
    assert "neither learned nor counted: 1 crowds" in found.report
    assert "1 boxes without an area" in found.report


def test_ignored_objects_keep_their_marks(folder: Path) -> None:
    """Those that COCO calls a crowd and Pascal VOC difficult: they are not learned, and no detection there is wrong."""
    (folder / "all.json").write_text(json.dumps(coco(folder)))
    text = voc("b.png", ("plate", 1, 21, 10, 30), ("plate", 1, 1, 9, 9))
    begin = text.rindex("<object>") + len("<object>")
    (folder / "annotations/b.xml").write_text(f"{text[:begin]}<difficult>1</difficult>{text[begin:]}")
    for place, mark in ((folder / "all.json", CROWD), (folder, DIFFICULT)):
        example = boxed_images([place])[1]
        assert (example.boxes, example.labels) == (((0, 20, 10, 30),), ("plate",))
        assert example.ignored == (MarkedObject("plate", (0, 0, 9, 9), mark),)
        form = Boxes({"cell": 1, "plate": 1})
        assert form.prepare(example)[0][1].tolist() == [1]
        right = form._right([example])[0]
        assert right.ignored is not None
        assert right.crowds is not None
        assert (right.ignored.tolist(), right.crowds.tolist()) == ([False, True], [False, mark == CROWD])
        found = ScoredBoxes(np.array([[1.0, 1, 9, 9], [0, 20, 10, 30]]), np.array([1, 1]), np.array([0.9, 0.8]))
        assert form.metrics([BoxesAnswer(scored=found)], [example])["AP50"] == pytest.approx(100)


def change(where: str, value: Any) -> Callable[[Path], Path]:
    """The COCO file with one change."""

    def changed(folder: Path) -> Path:
        table = coco(folder)
        place: Any = table
        *path, last = (int(part) if part.isdigit() else part for part in where.split("."))
        for part in path:
            place = place[part]
        place[last] = value
        (folder / "all.json").write_text(json.dumps(table))
        return folder / "all.json"

    return changed


def write(name: str, text: str) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name if name.endswith("json") else folder

    return written


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: folder / "none", "there is no file or folder"),
        (lambda folder: folder / "images", "has no annotations: it needs a Pascal VOC .xml file"),
        (write("all.json", "{"), "all.json is damaged: Expecting property name"),
        (write("all.json", "[]"), "is damaged: a JSON object was expected, not list"),
        (change("images.0.file_name", "c.png"), "lists the image c.png, which is neither in"),
        (change("images.0.file_name", "x" * 5000), "lists the image x+ … x+, which is neither in"),
        (change("images.1.file_name", "a.png"), "lists 2 images with the file .*a.png"),
        (change("images.1.id", 7), "has two images with the same id"),
        (change("annotations.0.category_id", 4), "an annotation of an image or a category that it does not list"),
        (
            change("annotations.0.bbox", [1, 2]),
            "annotations.0.: bbox is .1.0, 2.0, None, None., but must be",
        ),
        (change("annotations", []), "no image has a box"),
        (change("categories.0.name", " \n"), "has a category without a name"),
        (change("categories.0.name", "\ud800"), r"is damaged: '.ud800' in a text is half of a character"),
        (change("categories.0.id", 2), "has two categories with the same id"),
        (
            change("images.0.width", 10**9),
            "a.png has 40 x 30 pixels, but its annotation says 1e.09 x 30: its",
        ),
        (change("images.0.width", float("inf")), "all.json is damaged: Infinity is not a number of JSON"),
        (write("annotations/a.xml", "<annotation"), "a.xml is not a Pascal VOC annotation: unclosed token"),
        (write("annotations/a.xml", "<svg/>"), "is not a Pascal VOC annotation: it is <svg>"),
        (write("annotations/c.xml", voc("c.png")), "c.xml is about the image c.png, which is not in the folder"),
        (write("annotations/c.xml", voc("a.png")), "c.xml and .*a.xml are both about the image"),
        (write("annotations/a.xml", voc("a.png", ("", 1, 1, 2, 2))), "a.xml has an object without a name"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, spoil: Callable[[Path], Path], message: str) -> None:
    with pytest.raises(UserError, match=message) as found:
        boxed_images([spoil(folder)])
    assert "\n" not in str(found.value)
    assert "UserError" not in str(found.value)


def test_images_of_one_name(folder: Path) -> None:
    (folder / "more").mkdir()
    PIL.Image.new("RGB", (40, 30)).save(folder / "more/a.png")
    with pytest.raises(UserError, match=r"a.xml is about a.png, but there are .*images/a.png and .*more/a.png"):
        boxed_images([folder])


@pytest.mark.parametrize(("claimed", "size"), [((40, 30), (40, 30)), ((30, 40), (30, 40)), (None, (30, 40))])
def test_images_that_metadata_turn(folder: Path, claimed: tuple[int, int] | None, size: tuple[int, int]) -> None:
    """They are turned, but where the annotation has their size from before."""
    turned = PIL.Image.new("RGBA", (40, 30))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(folder / "images/a.png", exif=exif)
    table = coco(folder)
    table["images"][0] |= dict(zip(("width", "height"), claimed or (0, 0), strict=True))
    (folder / "all.json").write_text(json.dumps(table))
    example = boxed_images([folder / "all.json"])[0]
    assert example.read().size == size
    form = FittedImage(size=40)
    inputs, _ = form.tensors([form.prepare(example.read())])
    assert inputs["sizes"].tolist() == [[size[1], size[0]]]
    assert inputs["pixels"][0, :, 10, 10].tolist() == [2, 2, 2]  # white, where it is transparent


def image() -> BoxedImage:
    """20 x 10 pixels, of which a box of 10 x 5 at the top left is white."""
    pixels = np.zeros((10, 20, 3), np.uint8)
    pixels[:5, :10] = 255
    return BoxedImage("x", ((0, 0, 10, 5), (5, 0, 20, 10)), ("white", "new"), lambda: PIL.Image.fromarray(pixels))


def batch_of(processor: Processor, *images: BoxedImage, generator: np.random.Generator | None = None) -> Batch:
    return processor.batch([*processor.prepare(Dataset("some", images))], generator)


def test_tensors() -> None:
    """Images are padded to a square; boxes are shares of the image. Classes that were not learned are left out."""
    processor = Processor(FittedImage(size=40), Boxes({"black": 1, "white": 3}))
    alone = BoxedImage("y", (), (), lambda: PIL.Image.new("L", (5, 40)))
    batch = batch_of(processor, image(), alone)
    assert batch.inputs["pixels"].shape == (2, 3, 40, 40)
    assert batch.inputs["sizes"].tolist() == [[20, 40], [40, 5]]
    assert batch.targets["labels"].tolist() == [[1, IGNORE], [IGNORE, IGNORE]]
    assert batch.targets["boxes"][0, 0].tolist() == [0.25, 0.25, 0.5, 0.5]
    assert batch.weight.tolist() == [1, 0]
    white = batch.inputs["pixels"][0, 0] > 1.9
    assert white[:9, :19].all()
    assert not white[11:].any()
    assert processor.sizes() == {"classes": 2, "image_size": 40}


def test_augmented_boxes_stay_on_what_they_are_around() -> None:
    processor = Processor(FittedImage(size=40), Boxes({"white": 3}, denoising=3))
    flipped = 0
    for seed in range(13):
        batch = batch_of(processor, image(), generator=np.random.default_rng(seed))
        height, width = batch.inputs["sizes"][0].tolist()
        assert 28 <= width <= 40
        pixels = batch.inputs["pixels"][0, 0, :height, :width] > 0
        columns = pixels.any(0).nonzero().flatten().tolist()
        x, _, w, _ = batch.targets["boxes"][0, 0].tolist()
        assert columns[0] == pytest.approx((x - w / 2) * width, abs=1)
        assert columns[-1] + 1 == pytest.approx((x + w / 2) * width, abs=1)
        flipped += x > 0.5
        assert batch.inputs["noisy_boxes"].shape == (1, 3, 2, 4)
        noise = batch.inputs["noisy_boxes"][0, :, 0] - batch.targets["boxes"][0, 0]
        assert (noise[:, :2].abs() <= 0.4 * 0.25 + 1e-6).all()
        assert (noise[:, 2:].abs() <= 0.4 * 0.5 + 1e-6).all()
    assert 0 < flipped < 13
