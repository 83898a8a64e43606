"""Segmentation from end to end: trained, saved, loaded, used, measured, looked at."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.contracts import IGNORE
from foveate.data.dataset import Dataset
from foveate.data.images.masks import MaskedImage, masked_images
from foveate.data.images.scenes import Scenes, Sprite
from foveate.data.sources.emoji_scenes import MaskedScenes
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.form import Changes, Fit
from foveate.forms.segments import Segments, ShowSegments
from foveate.metrics.segments import count_pixels, segment_metrics
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training
from foveate.viewer.protocol import File

CONSOLE = Console(file=StringIO())

SIZES = {"width": 32, "heads": 2, "feedforward": 48, "decoder_layers": 1}

LABELS = ("ground", "red", "blue")


def scenes(count: int, first: int) -> Dataset[MaskedImage]:
    """Rectangles in colours of their own."""
    colours = {"red": (255, 0, 0), "blue": (0, 0, 255)}
    drawings = [
        Sprite(name, name, name, (np.full((5, 7, 4), (*colour, 255), np.uint8),)) for name, colour in colours.items()
    ]
    return Dataset("scenes", MaskedScenes(Scenes(drawings, first, count, 48, (15, 25), 2), LABELS), "images")


def recipe(out: Path, **changes: Any) -> Recipe:
    training = Training(
        steps=30,
        validate_every=30,
        save_every=30,
        learning_rate=4e-3,
        optimizer="muon",
        warmup=3,
        precision="float32",
        average=1,
    )
    chosen = {"source": "emoji-scenes-masks", "batch": 8, "size": 48, "architecture": SIZES}
    return make_recipe("segment", **{**chosen, **changes}, out=out, training=training)


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    out = tmp_path_factory.mktemp("segment") / "run"
    torch.manual_seed(0)
    learn(recipe(out), Splits(scenes(120, 0), scenes(9, 150), scenes(9, 180)), CONSOLE)
    return foveate.load(out)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "new").mkdir()
    scenes(1, 200)[0].read().save(tmp_path / "new/0.png")
    PIL.Image.new("L", (90, 30)).save(tmp_path / "new/1.png")
    (tmp_path / "new/2.png").write_bytes(b"no image")
    return tmp_path / "new"


def test_it_learns_and_is_measured_beside_the_usual_label_of_each_place(skill: Skill) -> None:
    found = skill.compare(scenes(20, 210), ShowSegments()).figures["ways"]
    baseline = found["the usual label of each place"]
    assert found["segmenter-tiny"]["mean_IoU"] > 1.5 * baseline["mean_IoU"]
    assert found["segmenter-tiny"]["pixel_accuracy"] > baseline["pixel_accuracy"]
    assert skill.processor.sizes() == {"classes": 3, "image_size": 48}


def test_run_gives_a_line_for_each_image_and_goes_on_after_a_damaged_one(skill: Skill, files: Path, capsys) -> None:
    arguments = ["run", str(skill.folder), str(files)]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--picture", str(files.parent / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    first, _, damaged = out.split("\n")[:3]
    assert first.startswith(f"{files / '0.png'}\tground ")
    assert damaged == ""
    assert "2.png cannot be read as an image" in err
    with PIL.Image.open(files.parent / "look.png") as picture:
        assert picture.width > 300
    with pytest.raises(SystemExit):
        main([*arguments, "--json"])
    _, wide, damaged = map(json.loads, capsys.readouterr().out.splitlines())
    assert wide["size"] == [90, 30]
    assert sum(count for _, count in wide["runs"]) == 90 * 30
    assert all(one != other for (one, _), (other, _) in zip(wide["runs"], wide["runs"][1:], strict=False))
    assert sum(wide["shares"].values()) == pytest.approx(1, abs=0.003)
    assert "cannot be read as an image" in damaged["error"]
    main(["run", str(skill.folder), str(files / "0.png"), "--least", "1"])
    assert capsys.readouterr().out == "\n"
    with pytest.raises(SystemExit):
        main(["run", str(skill.folder), str(files / "0.png"), "--least", "2"])


def test_a_page_shows_a_query_of_each_label_over_the_image(skill: Skill, files: Path) -> None:
    found = open_model(skill.folder).look(File("1.png", (files / "1.png").read_bytes()), 4096)
    sites = {panel.name: panel for panel in found.document().sites}
    assert set(sites) == {"decoder.0.self", "decoder.0.cross"}
    assert list(sites["decoder.0.cross"].queries.labels) == [*LABELS]
    assert sites["decoder.0.cross"].keys.picture.height == 6
    assert list(sites["decoder.0.self"].keys.labels) == [*LABELS]


def test_masks_follow_their_images() -> None:
    """Scaled, flipped, and laid into the square; nothing counts beyond."""
    form = Segments(LABELS, ((0,),), 4)
    mask = np.array([[0, 1, 2, IGNORE]])
    fits = [Fit((4, 1), (4, 1)), Fit((4, 1), (4, 1), flipped=True), Fit((4, 1), (2, 1))]
    read = lambda: mask  # noqa: E731
    _, targets, weight = form.tensors([read] * 3, Changes(fits=fits), None)
    rows = targets["labels"].unflatten(1, (4, 4))
    assert rows[:, 0].tolist() == [[0, 1, 2, IGNORE], [IGNORE, 2, 1, 0], [1, IGNORE, IGNORE, IGNORE]]
    assert (rows[:, 1:] == IGNORE).all()
    assert weight.tolist() == [3, 3, 1]


def test_labels_of_other_data_by_their_names() -> None:
    """A label that the model does not know is one that it never finds."""
    form = Segments(LABELS, ((0,),), 4)
    mask = np.array([[0, 1, IGNORE]])
    example = MaskedImage("x", ("blue", "green"), lambda: PIL.Image.new("L", (3, 1)), lambda: mask)
    assert form.prepare(example)[0]().tolist() == [[2, 4, IGNORE]]


def test_metrics_by_hand() -> None:
    found, right = np.array([[0, 0, 1, 1, 1]]), np.array([[0, 1, 1, IGNORE, 3]])
    metrics = segment_metrics(count_pixels(found, right, 3))
    assert metrics["pixel_accuracy"] == pytest.approx(50)
    assert metrics["mean_IoU"] == pytest.approx(100 * (1 / 2 + 1 / 3) / 2)


def folder_of(folder: Path, names: str = "ground\nred\n") -> Path:
    """Two images of 4 x 3 pixels with masks: one of numbers, one with a palette."""
    for part in ("images", "masks"):
        (folder / part).mkdir(parents=True)
    for number, kind in enumerate(("L", "P")):
        PIL.Image.new("RGB", (4, 3), "red").save(folder / f"images/{number}.jpg")
        mask = np.zeros((3, 4), np.uint8)
        mask[0] = number, 1, 1, 255
        image = PIL.Image.fromarray(mask)
        if kind == "P":
            image.putpalette([*range(256)] * 3)
        image.save(folder / f"masks/{number}.png")
    (folder / "labels.txt").write_text(names)
    return folder


def test_a_users_folder(tmp_path: Path) -> None:
    found = masked_images([folder_of(tmp_path / "mine")])
    assert [example.read_mask()[0].tolist() for example in found] == [[0, 1, 1, IGNORE], [1, 1, 1, IGNORE]]
    assert found[0].labels == ("ground", "red")
    assert found.notes == ("2 labels: ground 77.3%, red 22.7%",)
    (tmp_path / "mine/labels.txt").unlink()
    assert masked_images([tmp_path / "mine"])[0].labels == ("class 0", "class 1")
    assert found[0].content() != found[1].content()


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one folder with images/ and masks/ in it"):
        masked_images([tmp_path])
    with pytest.raises(UserError, match=r"names 1 classes, but the masks have class 1"):
        masked_images([folder_of(tmp_path / "a", "ground\n")])
    with pytest.raises(UserError, match="gives two classes the same name"):
        masked_images([folder_of(tmp_path / "b", "red\nred\n")])
    place = folder_of(tmp_path / "c")
    PIL.Image.new("L", (3, 4)).save(place / "masks/1.png")
    with pytest.raises(UserError, match=r"masks/1.png has 3 x 4 pixels, but its image 4 x 3"):
        masked_images([place])
    PIL.Image.new("RGB", (4, 3)).save(place / "masks/1.png")
    with pytest.raises(UserError, match=r"masks/1.png is not a mask"):
        masked_images([place])
    (place / "masks/1.png").unlink()
    with pytest.raises(UserError, match=r"images/1.jpg has no mask: there is no file"):
        masked_images([place])


def test_scenes_know_what_each_pixel_shows() -> None:
    """The label is where the colour is; identical scenes have identical content."""
    for example in scenes(9, 0):
        pixels, mask = np.asarray(example.read()).astype(int), example.read_mask()
        assert mask.shape == (48, 48)
        for label, colour in ((1, (255, 0, 0)), (2, (0, 0, 255))):
            assert ((np.abs(pixels - colour).sum(-1) == 0) == (mask == label)).mean() > 0.99
    assert scenes(3, 1)[0].content() == scenes(3, 0)[1].content()


def test_other_labels_in_validation(tmp_path: Path) -> None:
    other = MaskedImage("x", ("a", "b"), lambda: PIL.Image.new("RGB", (9, 9)), lambda: np.zeros((9, 9), np.int64))
    with pytest.raises(UserError, match=r"other has other labels than scenes, such as 'a'"):
        learn(recipe(tmp_path / "run"), Splits(scenes(8, 1), Dataset("other", [other]), scenes(1, 3)), CONSOLE)
