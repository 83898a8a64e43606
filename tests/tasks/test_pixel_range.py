"""Pixels of more than 8 bits: what their values mean is said by the user or by the file, or told as an assumption."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_examples
import numpy as np
import PIL.Image
import PIL.TiffImagePlugin
import pytest

import foveate
from foveate.cli import main
from foveate.data.images import decoding
from foveate.data.images.decoding import AVIF, DamagedImage, in_8_bits, read_image
from foveate.data.images.labelled import NOT_READ, labelled_images
from foveate.errors import UserError
from foveate.forms.form import setting_names
from foveate.forms.image_files import image_files, without_damaged
from foveate.forms.ranged_pixels import RangedPixels, use_pixel_range
from foveate.tasks import TASKS, find_task

TWELVE = (0.0, 4095.0)


def deep(values: Any, kind: Any = np.uint16) -> PIL.Image.Image:
    return PIL.Image.fromarray(np.array(values, kind))


def grey(image: PIL.Image.Image, pixel_range: tuple[float, float] | None = None) -> list[list[int]]:
    found: list[list[int]] = np.asarray(in_8_bits(image, pixel_range)).tolist()
    return found


def saved(path: Path, image: PIL.Image.Image, **tags: Any) -> PIL.Image.Image:
    """The image of a TIFF file with tags by their names."""
    info = PIL.TiffImagePlugin.ImageFileDirectory_v2()
    for name, (number, value) in {"most": (281, 4095), "least": (280, 1000), "float_most": (341, 2.0)}.items():
        if name in tags:
            info[number] = value
    image.save(path, tiffinfo=info)
    return read_image(path)


def test_values_of_a_range(tmp_path: Path) -> None:
    assert grey(deep([[0, 819, 4095, 5000]]), TWELVE) == [[0, 51, 255, 255]]
    assert grey(deep([[-1.0, 0.0, 0.5, float("nan"), 3.0]], np.float32), (0.0, 1.0)) == [[0, 0, 128, 0, 255]]
    assert grey(deep([[0, 70_000]], np.int32), (0.0, 140_000.0)) == [[0, 128]]
    assert grey(PIL.Image.new("L", (1, 1), 7), TWELVE) == [[7]]
    assert grey(saved(tmp_path / "a.tif", deep([[1000, 4095]]), most=True, least=True)) == [[0, 255]]
    assert grey(saved(tmp_path / "a.tif", deep([[0, 4095]]), most=True)) == [[0, 255]]
    assert grey(saved(tmp_path / "a.tif", deep([[0.0, 1.0]], np.float32), float_most=True)) == [[0, 128]]
    with pytest.raises(DamagedImage, match=r"floating-point pixels of no known range: give --pixel-range LOW HIGH"):
        in_8_bits(deep([[0.5]], np.float32))


def test_what_is_assumed_of_few_values_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    decoding._tell_assumed.cache_clear()
    for _ in range(2):
        assert grey(deep([[4095]])) == [[16]]
    assert capsys.readouterr().err == (
        "assumed: 16-bit pixels have the range 0 to 65,535, though an image has no value above 4,095; if they have 12 "
        "bits, give --pixel-range 0 4095\n"
    )
    decoding._tell_assumed.cache_clear()
    assert grey(deep([[4096]])) == [[16]]
    assert grey(deep([[0]])) == [[0]]
    assert grey(deep([[4095]]), TWELVE) == [[255]]
    assert not capsys.readouterr().err


def in_12_bits(folder: Path) -> None:
    """Save the images of a folder again, grey and with values up to 4095, but for masks."""
    for path in sorted(folder.rglob("*.png")):
        if path.parent.name != "masks":
            values = np.asarray(PIL.Image.open(path).convert("L"), np.uint16)
            deep((values / 255 * 4095).round()).save(path)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_that_reads_images_reads_a_range(name: str, tmp_path: Path) -> None:
    task = find_task(name)
    made = made_examples.examples_of(task, tmp_path / "made")
    has_images = any((tmp_path / "made").rglob("*.png"))
    assert ("pixel_range" in setting_names(type(task.reads))) == has_images
    if not has_images:
        return
    recipe = task.recipe(data=made.data, **made.settings)
    before = [np.asarray(one.read().convert("L")) for one in task.read_files(made.data, recipe)]
    in_12_bits(tmp_path / "made")
    recipe = task.recipe(data=made.data, pixel_range=TWELVE, **made.settings)
    assert isinstance(recipe.reads, RangedPixels)
    after = [one.read() for one in task.read_files(made.data, recipe)]
    assert {one.mode for one in after} == {"L"}
    for one, other in zip(before, after, strict=True):
        assert np.abs(one.astype(int) - np.asarray(other).astype(int)).max() <= 1


def test_a_trained_model_keeps_its_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = made_examples.labelled_images(tmp_path)
    (images,) = made.data
    in_12_bits(images)
    out, first = tmp_path / "run", sorted(images.rglob("*.png"))[0]
    training = ["--model", "vit-tiny", "--steps", "2", "--validate-every", "2", "--batch", "8", "--size", "16"]
    main(["train", "classify-image", "--data", str(images), "--out", str(out), "--pixel-range", "0", "4095", *training])
    skill = foveate.load(out)
    assert skill.processor.reads.pixel_range == TWELVE
    plain = tmp_path / "plain.png"
    in_8_bits(read_image(first), TWELVE).save(plain)
    ranged = skill.processor.reads.prepare(skill.processor.reads.open(str(first)))
    assert np.array_equal(ranged, skill.processor.reads.prepare(skill.processor.reads.open(str(plain))))
    capsys.readouterr()
    main(["run", str(out), str(first), str(plain), "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["probabilities"] == lines[1]["probabilities"]
    found = []
    for flags in ([], ["--pixel-range", "0", "65535"]):
        main(["eval", str(out), "--data", str(images), "--output", str(tmp_path / "answers.txt"), *flags])
        found.append((tmp_path / "answers.txt").read_text())
        main(["run", str(out), str(first), "--json", *flags])
        found.append(capsys.readouterr().out.splitlines()[-1])
    assert found[0] != found[2]
    assert found[1] != found[3]


@pytest.mark.parametrize("high", ["5", "nan", "inf"])
def test_ranges_that_cannot_be(high: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (images,) = made_examples.labelled_images(tmp_path).data
    with pytest.raises(SystemExit) as ended:
        main(["train", "classify-image", "--data", str(images), "--out", str(tmp_path), "--pixel-range", "5", high])
    assert ended.value.code == 2
    assert f"pixel_range is 5 to {high}, but LOW must be less than HIGH" in capsys.readouterr().err


def test_a_model_that_reads_no_images_has_no_range() -> None:
    skill = SimpleNamespace(processor=SimpleNamespace(reads=find_task("classify").reads))
    use_pixel_range(skill, None)
    with pytest.raises(UserError, match="--pixel-range is for models that read images"):
        use_pixel_range(skill, TWELVE)


@pytest.mark.parametrize("ending", NOT_READ)
def test_images_of_formats_that_are_not_read_are_named(ending: str, tmp_path: Path) -> None:
    (images,) = made_examples.labelled_images(tmp_path).data
    odd = images / "red" / f"odd{ending}"
    odd.write_bytes(b"something")
    report = without_damaged(labelled_images([images])).report
    assert f"left out: 1 image that cannot be read: {odd}" in report
    assert str(odd) in image_files([str(images)])


@pytest.mark.skipif(not AVIF, reason="this Pillow has no AVIF")
def test_avif(tmp_path: Path) -> None:
    (images,) = made_examples.labelled_images(tmp_path).data
    PIL.Image.new("RGB", (16, 16), "red").save(images / "red" / "new.avif")
    found = without_damaged(labelled_images([images]))
    assert len(found) == 1 + made_examples.COUNT
    assert np.abs(np.asarray(read_image(images / "red" / "new.avif"))[3, 3] - [255, 0, 0]).max() < 9
