"""Keypoints from end to end: trained, saved, loaded, used, measured, looked at."""

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
from foveate.contracts import IGNORE, Batch
from foveate.data.dataset import Dataset
from foveate.data.images.keypoints import PosedImage, posed_images
from foveate.data.sources.puppets import NAMES, Puppets
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.boxes import ShowObjects
from foveate.forms.form import Changes, Fit
from foveate.forms.keypoints import Keypoints
from foveate.metrics.keypoints import point_metrics
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training
from foveate.training.objectives.point_distance import PointDistance
from foveate.viewer.protocol import File

CONSOLE = Console(file=StringIO())

SIZES = {"width": 32, "heads": 2, "feedforward": 48, "encoder_layers": 1, "decoder_layers": 1}


def dots(count: int, seed: int) -> Dataset[PosedImage]:
    """A red dot, and a blue one, which is not in every image, on grey noise."""
    generator = np.random.default_rng(seed)
    examples = []
    for number in range(count):
        pixels = generator.integers(90, 130, (40, 40, 3)).astype(np.uint8)
        places = generator.integers(3, 37, (2, 2)).tolist()
        points: list[Any] = [tuple(map(float, place)) for place in places]
        if number % 4 == 3:
            points[1] = None
        for point, channel in zip(points, (0, 2), strict=True):
            if point is not None:
                x, y = map(int, point)
                pixels[y - 3 : y + 3, x - 3 : x + 3] = 0
                pixels[y - 3 : y + 3, x - 3 : x + 3, channel] = 255
        image = PIL.Image.fromarray(pixels)
        examples.append(PosedImage(f"dots {number}", ("left red", "blue"), tuple(points), lambda image=image: image))
    return Dataset("dots", examples, "images")


def recipe(out: Path, **changes: Any) -> Recipe:
    training = Training(
        steps=40,
        validate_every=40,
        save_every=40,
        learning_rate=4e-3,
        optimizer="muon",
        warmup=3,
        precision="float32",
        average=1,
    )
    chosen = {"source": "puppets", "batch": 16, "size": 40, "architecture": SIZES}
    return make_recipe("keypoints", **{**chosen, **changes}, out=out, training=training)


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    out = tmp_path_factory.mktemp("keypoints") / "run"
    torch.manual_seed(0)
    learn(recipe(out, augment=False), Splits(dots(160, 1), dots(20, 2), dots(20, 3)), CONSOLE)
    return foveate.load(out)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "new").mkdir()
    for number, example in enumerate(dots(2, 5)):
        example.read().save(tmp_path / f"new/{number}.png")
    (tmp_path / "new/2.png").write_bytes(b"no image")
    return tmp_path / "new"


def test_it_learns_and_is_measured_beside_the_mean_pose(skill: Skill) -> None:
    found = skill.compare(dots(40, 7), ShowObjects()).figures["ways"]
    assert found["pose-tiny"]["distance"] < 0.8 * found["the mean pose"]["distance"]
    assert set(found["pose-tiny"]) == {"PCK", "distance"}
    assert skill.processor.sizes() == {"points": 2, "image_size": 40}


def test_run_gives_a_line_for_each_image_and_goes_on_after_a_damaged_one(skill: Skill, files: Path, capsys) -> None:
    arguments = ["run", str(skill.folder), str(files), "--threshold", "0"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--picture", str(files.parent / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    first, _, damaged = out.split("\n")[:3]
    place, red, blue = first.split("\t")
    assert (place, red.rsplit(" ", 2)[0], blue.split()[0]) == (str(files / "0.png"), "left red", "blue")
    assert damaged == ""
    assert "2.png cannot be read as an image" in err
    with PIL.Image.open(files.parent / "look.png") as picture:
        assert picture.width > 300
    with pytest.raises(SystemExit):
        main([*arguments, "--json"])
    first, _, damaged = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["size"], [point["name"] for point in first["points"]]) == ([40, 40], ["left red", "blue"])
    assert all(0 <= point[side] <= 40 for point in first["points"] for side in ("x", "y"))
    assert "cannot be read as an image" in damaged["error"]
    main(["run", str(skill.folder), str(files / "0.png"), "--threshold", "1"])
    assert capsys.readouterr().out == f"{files / '0.png'}\tnothing\n"


def test_a_page_shows_named_queries_over_the_image(skill: Skill, files: Path) -> None:
    found = open_model(skill.folder).look(File("0.png", (files / "0.png").read_bytes()), 4096)
    sites = {panel.name: panel for panel in found.document().sites}
    assert list(sites["decoder.cross"].queries.labels) == ["left red", "blue"]
    assert sites["decoder.cross"].keys.picture.height == 5
    assert sites["encoder.0.self"].queries.picture == sites["decoder.blocks.0.cross"].keys.picture
    assert list(sites["decoder.blocks.0.self"].keys.labels) == ["left red", "blue"]


def test_a_point_is_where_its_query_looks(skill: Skill, files: Path) -> None:
    """The mean of the places by the weights that a look shows."""
    answer = skill.run(files / "0.png", threshold=0.0)
    reads = skill.processor.reads
    sight = skill.watch(reads.tensors([reads.prepare(reads.open(answer.given))])[0])
    rows = skill.processor.writes.rows(sight, skill.model, answer, 0)
    centres = (torch.arange(5) + 0.5) * 8
    for row, point in zip(rows, answer.points, strict=True):
        weights = row.weights.unflatten(0, (5, 5))
        assert float((weights.sum(0) * centres).sum()) == pytest.approx(point.x, abs=0.05)
        assert float((weights.sum(1) * centres).sum()) == pytest.approx(point.y, abs=0.05)


def test_a_flipped_image_has_its_left_at_the_right() -> None:
    form = Keypoints(("left eye", "right eye", "nose"), ((0.5, 0.5),) * 3)
    points = np.array([[2, 1], [6, 1], [np.nan, np.nan]], np.float32)
    fits = [Fit((8, 4), (16, 8), flipped) for flipped in (False, True)]
    _, targets, weight = form.tensors([points, points], Changes(fits=fits), None)
    assert targets["points"].tolist() == [[[0.25, 0.25], [0.75, 0.25], [0.5, 0.5]]] * 2
    assert targets["labels"].tolist() == [[0, 0, IGNORE]] * 2
    assert weight.tolist() == [2, 2]


def test_metrics_by_hand() -> None:
    """One of three points is within a twentieth of the longer side; the fourth is not known."""
    found = [np.array([[10.0, 10], [0, 0]]), np.array([[0.0, 0], [3, 4]])]
    right = [np.array([[10.0, 14], [6, 8]]), np.array([[np.nan, np.nan], [0, 0]])]
    metrics = point_metrics(found, right, [(100, 50), (50, 50)])
    assert metrics["PCK"] == pytest.approx(100 / 3)
    assert metrics["distance"] == pytest.approx((4 + 10 + 10) / 3)


def test_the_loss_by_hand() -> None:
    """The distance of the point that is in the image, and the entropy of two decisions of one half."""
    labels = torch.tensor([[0, IGNORE]])
    batch = Batch({}, {"points": torch.tensor([[[0.3, 0.4], [0.5, 0.5]]]), "labels": labels}, (labels == 0).sum(1), "x")
    output = type("Output", (), {"points": torch.zeros(1, 2, 2), "logits": torch.zeros(1, 2)})()
    loss = PointDistance(presence_weight=0.25)(output, batch)
    assert float(loss.total) == pytest.approx(0.5 + 0.25 * 2 * np.log(2), abs=1e-4)
    with pytest.raises(UserError, match="presence_weight is -1"):
        PointDistance(presence_weight=-1.0).check()


def coco(folder: Path, *poses: dict[str, Any]) -> Path:
    """A file of two images of 40 x 30 pixels."""
    for name in ("a", "b"):
        PIL.Image.new("RGB", (40, 30), "red").save(folder / f"{name}.png")
    table = {
        "images": [{"id": number, "file_name": f"{name}.png"} for number, name in enumerate("ab")],
        "categories": [{"id": 1, "name": "face", "keypoints": ["nose", "chin"]}, {"id": 2, "name": "hat"}],
        "annotations": list(poses),
    }
    (folder / "all.json").write_text(json.dumps(table))
    return folder / "all.json"


def test_coco_keypoints(tmp_path: Path) -> None:
    """Whole images; those without a labelled point are left out."""
    first = {"image_id": 0, "category_id": 1, "keypoints": [5, 6, 2, 0, 0, 0], "bbox": [1, 2, 10, 20]}
    none = {"image_id": 1, "category_id": 1, "keypoints": [0, 0, 0, 0, 0, 0]}
    hat = {"image_id": 1, "category_id": 2}
    found = posed_images(coco(tmp_path, first, none, hat))
    assert [example.points for example in found] == [((5, 6), None)]
    assert (found[0].names, found[0].read().size) == (("nose", "chin"), (40, 30))
    assert found.notes == ("2 points of each face", "left out: 2 objects without points")


def test_several_objects_of_an_image_are_cut_out(tmp_path: Path) -> None:
    """With a margin; copies of one image are on one side when some are held out."""
    first = {"image_id": 0, "category_id": 1, "keypoints": [15, 16, 2, 0, 0, 0], "bbox": [10, 10, 10, 10]}
    second = {"image_id": 0, "category_id": 1, "keypoints": [5, 6, 2, 25, 26, 1]}
    one, other = posed_images(coco(tmp_path, first, second))
    assert (one.points, one.read().size) == (((6, 7), None), (13, 13))
    assert (other.points, other.read().size) == (((2, 2), (22, 22)), (25, 25))
    task = make_recipe("keypoints", data=tmp_path / "all.json").reads
    assert task.group(one) == task.group(other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keypoints": [1, 2, 2]}, "has an annotation with 3 numbers, but 2 points take 6"),
        ({"image_id": 7}, "has an annotation of an image that it does not list"),
        ({"keypoints": [0] * 6}, "no object has a labelled point"),
        ({"keypoints": ["x"] * 6}, "is not a file of COCO keypoints"),
    ],
)
def test_files_that_cannot_be(changes: dict, message: str, tmp_path: Path) -> None:
    pose = {"image_id": 0, "category_id": 1, "keypoints": [5, 6, 2, 0, 0, 0]}
    with pytest.raises(UserError, match=message):
        posed_images(coco(tmp_path, {**pose, **changes}))


def test_other_points_in_validation(tmp_path: Path) -> None:
    other = [PosedImage("x", ("nose", "blue"), (None, (1.0, 1.0)), lambda: PIL.Image.new("RGB", (9, 9)))]
    with pytest.raises(UserError, match=r"other points: 'left red' is not in both"):
        learn(recipe(tmp_path / "run"), Splits(dots(8, 1), Dataset("other", other), dots(1, 3)), CONSOLE)


def test_puppets_repeat_and_have_their_joints_inside() -> None:
    example, again = Puppets(5, 3)[1], Puppets(0, 9)[6]
    assert example == again
    assert np.array_equal(np.asarray(example.read()), np.asarray(again.read()))
    assert example.content() == again.content()
    assert example.names == NAMES
    places = [point for example in Puppets(0, 40) for point in example.points if point is not None]
    assert all(0 <= side < 96 for point in places for side in point)
    assert len(Puppets(0, 40)[3:5]) == 2
