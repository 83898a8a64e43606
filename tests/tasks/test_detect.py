"""Detection from end to end: trained, saved, loaded, used, measured, drawn."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.boxes import BoxedImage
from foveate.data.images.scenes import Scenes, Sprite
from foveate.data.sources.emoji_scenes import BoxedScenes
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.boxes import ShowObjects, surest
from foveate.interop.pretrained import efficientnet
from foveate.metrics.detection import ScoredBoxes
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training
from foveate.viewer.protocol import File

CONSOLE = Console(file=StringIO())

SIZES = {"width": 16, "heads": 2, "feedforward": 16, "encoder_layers": 1, "decoder_layers": 2, "queries": 7}


def scenes(count: int, first: int, *names: str) -> Dataset[BoxedImage]:
    """Rectangles in colours of their own."""
    colours = {"red": (255, 0, 0), "blue": (0, 0, 255)}
    drawings = [
        Sprite(name, name, name, (np.full((5, 7, 4), (*colours[name], 255), np.uint8),)) for name in names or colours
    ]
    return Dataset("scenes", BoxedScenes(Scenes(drawings, first, count, 64, (20, 32), 2), by_group=False), "images")


def recipe(out: Path, **changes: object) -> Recipe:
    training = Training(steps=4, learning_rate=1e-3, warmup=1, validate_every=4, save_every=4, precision="float32")
    chosen = {"source": "emoji-scenes", "batch": 4, "size": 64, "architecture": {**SIZES, **changes}}
    return make_recipe("detect", model="detr-refined-tiny", **chosen, out=out, training=training)


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    out = tmp_path_factory.mktemp("detect") / "run"
    learn(recipe(out), Splits(scenes(16, 0), scenes(4, 50), scenes(4, 80)), CONSOLE)
    return foveate.load(out)


def lesson(chosen: Recipe) -> Lesson:
    return Lesson(find_task("detect"), chosen)


def save_red(folder: Path) -> Path:
    PIL.Image.new("RGB", (64, 64), "red").save(folder / "red.png")
    return folder / "red.png"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "new").mkdir()
    for number, example in enumerate(scenes(2, 90)):
        example.read().save(tmp_path / f"new/{number}.png")
    PIL.Image.new("L", (90, 30)).save(tmp_path / "new/2.png")
    (tmp_path / "new/3.png").write_bytes(b"no image")
    return tmp_path / "new"


def test_run_gives_a_line_for_each_image_and_goes_on_after_a_damaged_one(
    skill: Skill, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(skill.folder)
    with pytest.raises(SystemExit) as ended:
        main(["run", folder, str(files), "--threshold", "0", "--json", "--picture", str(files.parent / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    first, _, wide, damaged = out.split("\n")[:4]
    found = json.loads(first)
    assert (found["place"], found["size"], len(found["objects"])) == (str(files / "0.png"), [64, 64], 7)
    scores = [one["score"] for one in found["objects"]]
    assert scores == sorted(scores, reverse=True)
    assert sorted(one["query"] for one in found["objects"]) == list(range(7))
    for one in json.loads(wide)["objects"]:
        left, top, right, bottom = one["box"]
        assert 0 <= left <= right <= 90
        assert 0 <= top <= bottom <= 30
    assert "3.png cannot be read as an image" in json.loads(damaged)["error"]
    assert "3.png cannot be read as an image" in err
    with pytest.raises(SystemExit):
        main(["run", folder, str(files / "3.png"), str(files / "0.png"), "--threshold", "1"])
    assert capsys.readouterr().out == f"\n{files / '0.png'}\tnothing\n"
    with PIL.Image.open(files.parent / "look.png") as picture:
        assert picture.width > 300
    with pytest.raises(SystemExit):
        main(["run", folder, str(files / "0.png"), "--threshold", "nan"])
    assert capsys.readouterr().err == "foveate: threshold is nan, but must be from 0 to 1\n"
    main(["run", folder, str(files / "0.png"), "--threshold", "1"])
    assert capsys.readouterr().out == f"{files / '0.png'}\tnothing\n"


def test_boxes_are_where_the_model_says(skill: Skill) -> None:
    """In pixels of the image, also of one that is padded to a square."""
    image = PIL.Image.new("RGB", (200, 50))
    reads = skill.processor.reads
    inputs, _ = reads.tensors([reads.prepare(image)])
    assert inputs["sizes"].tolist() == [[16, 64]]
    output = skill.forward(inputs)
    (example,) = [BoxedImage("x", ((0, 0, 9, 9),), ("red",), lambda: image)]
    line = skill.measure([example], ShowObjects(threshold=0))[0][0]
    _, *objects = line.split("\t")
    best = int(output.logits[0].max(-1).values.argmax())
    x, y, w, h = output.boxes[0, best].tolist()
    expected = [max(0, x - w / 2) * 200, max(0, y - h / 2) * 50, min(1, x + w / 2) * 200, min(1, y + h / 2) * 50]
    assert [float(side) for side in objects[0].split(" ")[2:]] == pytest.approx(expected, abs=0.6)


def test_measured_beside_trivial_ways(skill: Skill) -> None:
    """A box around the whole image fits an object that fills it, and nothing else."""
    image = PIL.Image.new("RGB", (40, 40))
    filled = BoxedImage("x", ((0, 0, 40, 38),), ("red",), lambda: image)
    empty = BoxedImage("y", (), (), lambda: image)
    other = BoxedImage("z", ((0, 0, 4, 4),), ("unknown",), lambda: image)
    labels = skill.processor.writes.labels
    usual = max(labels, key=labels.__getitem__)
    ways = skill.baselines([filled, empty], ShowObjects())
    whole = ways[f"the whole image, always {usual}"]
    assert whole["AP50_any_class"] == pytest.approx(100)
    assert ways[f"a mean box, always {usual}"]["AP50"] == 0
    found = skill.measure([filled, empty], ShowObjects(threshold=0))[1]
    assert set(found) == {*whole, "attention_in_box", "uniform_in_box"}
    assert 0 < found["attention_in_box"] < 100
    assert "1 of 2 have classes that the model did not learn: unknown" in skill.notes([filled, other])


def test_eval_of_a_users_files(skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = {"id": 1, "file_name": save_red(tmp_path).name}
    box = {"image_id": 1, "category_id": 5, "bbox": [0, 0, 64, 64]}
    table = {"images": [image], "annotations": [box], "categories": [{"id": 5, "name": "red"}]}
    (tmp_path / "all.json").write_text(json.dumps(table))
    main(["eval", str(skill.folder), "--data", str(tmp_path / "all.json"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["images"] == 1
    whole = [name for name in found["ways"] if name.startswith("the whole image")]
    assert found["ways"][whole[0]]["AP50_any_class"] == pytest.approx(100)


def test_the_papers_model_learns_too(tmp_path: Path) -> None:
    """Whole boxes and softmax, on images some of which have no object."""
    chosen = recipe(tmp_path / "run", boxes="direct", no_object=True, denoising=None, norm="post")
    empty = BoxedImage("empty", (), (), lambda: PIL.Image.new("RGB", (64, 64)))
    some = Dataset("some", [*scenes(8, 0), *[empty] * 8], "images")
    skill = learn(chosen, Splits(some, scenes(2, 50), scenes(2, 80)), CONSOLE)
    (found,) = skill.answer([str(save_red(tmp_path))], ShowObjects(threshold=0))
    assert found.queries == 7
    assert 1 <= len(found.objects) <= 7
    assert sum(one.score for one in found.objects) < 7


def test_of_boxes_of_one_label_that_overlap_the_surest_one_is_found() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [0, 0, 10, 9], [0, 0, 10, 5], [0, 0, 10, 8.5]], np.float64)
    found = ScoredBoxes(boxes, np.array([0, 0, 1, 0, 0]), np.array([0.5, 0.9, 0.1, 0.2, 0.3]))
    assert surest(found, 0.7).tolist() == [1, 3, 2]
    assert surest(found, 0.92).tolist() == [1, 0, 3, 2]


def test_the_threshold_is_learned_from_the_validation(skill: Skill) -> None:
    """With it as many objects are found there as there are; a given one counts instead."""
    held, threshold = scenes(4, 50), skill.processor.writes.threshold
    assert threshold is not None
    answers = skill.answer_examples([*held], ShowObjects())
    assert sum(len(one.objects) for one in answers) == sum(len(one.boxes) for one in held)
    assert foveate.load(skill.folder).processor.writes.threshold == threshold
    assert all(len(one.objects) == len(one.every) for one in skill.answer_examples([*held], ShowObjects(threshold=0)))


def test_what_cannot_be_learned_is_said_before_training(tmp_path: Path) -> None:
    red, both = scenes(16, 0, "red"), scenes(4, 0)
    with pytest.raises(UserError, match="scenes has the class 'blue', which scenes does not have"):
        learn(recipe(tmp_path / "a"), Splits(red, both, both), CONSOLE)
    with pytest.raises(SystemExit):
        main(["train", "detect", "--data", str(tmp_path / "none.json"), "--out", str(tmp_path / "c")])


def test_there_are_as_many_queries_as_an_image_has_objects(tmp_path: Path) -> None:
    skill = learn(recipe(tmp_path / "run", queries=1), Splits(scenes(16, 0), scenes(4, 50), scenes(4, 80)), CONSOLE)
    assert skill.model.config.queries == 2
    assert foveate.load(tmp_path / "run").model.config.queries == 2


def test_the_backbone_begins_with_trained_weights(tmp_path: Path) -> None:
    trained = foveate.create("efficientnet-lite0", classes=2)
    efficientnet.save(tmp_path / "lite", trained.state_dict(), ["a", "b"])
    chosen = make_recipe("detect", model="detr-lite0-tiny", start=tmp_path / "lite", architecture=SIZES)
    model = lesson(chosen).build(classes=3, image_size=64).train()
    ours = model.backbone.state_dict()
    assert len(ours) > 50
    assert all(torch.equal(value, trained.state_dict()[name]) for name, value in ours.items())
    model.backbone.grid(torch.randn(2, 3, 32, 32))
    assert torch.equal(model.backbone.stem.norm.running_mean, trained.stem.norm.running_mean)
    usual = lesson(make_recipe("detect", start=tmp_path / "lite", architecture=SIZES)).build(classes=3)
    taken = usual.backbone.state_dict()  # of the family of the folder, whatever the preset has
    assert len(taken) > 50
    assert all(torch.equal(value, trained.state_dict()[name]) for name, value in taken.items())


def test_a_page_shows_queries_over_the_image(skill: Skill, files: Path, tmp_path: Path) -> None:
    """Those of an image that is padded too; without any object the surest query is drawn."""
    main(["look", str(skill.folder), str(files / "2.png"), "--out", str(tmp_path / "look.html")])
    assert (tmp_path / "look.html").stat().st_size > 10_000
    file = File("2.png", (files / "2.png").read_bytes())
    found = open_model(skill.folder).look(file, 4096)
    sites = {panel.name: panel for panel in found.document().sites}
    cross = sites["decoder.1.cross"]
    assert cross.keys.picture.height == cross.keys.picture.width
    assert sites["encoder.0.self"].queries.picture == cross.keys.picture
    assert list(cross.queries.labels) == list(sites["decoder.1.self"].keys.labels)
    assert len(cross.queries.labels) == 7
    (answer,) = skill.answer([str(files / "2.png")], ShowObjects(threshold=1))
    assert answer.objects == []
    assert [axes.get_title() for axes in skill.picture(answer).axes] == ["0 objects", answer.every[0].name]


def test_files_of_one_content_are_on_one_side(tmp_path: Path) -> None:
    """Copies of a file are grouped, and the last image with a class is never held out."""
    place = save_red(tmp_path)
    one = BoxedImage("a", (), (), lambda: PIL.Image.open(place), file=place)
    other = BoxedImage("b", ((0, 0, 9, 9),), ("red",), lambda: PIL.Image.open(place), file=place)
    task = find_task("detect")
    assert task.reads.group(one) == task.reads.group(other)
    assert task.writes.kinds(other) == {"red"}
