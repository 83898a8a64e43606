"""Image classification from end to end: trained, saved, loaded, used, measured."""

import json
from dataclasses import replace
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
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ImageFormat, LabelledImage, images_of_arrays
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.image import AugmentedImage
from foveate.forms.label import Label, ShowLabels
from foveate.forms.processor import Processor
from foveate.tasks.classify_image import TASK
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.tensor_files import read_tensors
from foveate.training import Training
from foveate.viewer.protocol import File

CONSOLE = Console(file=StringIO())


def stripes(count: int, seed: int) -> Dataset[LabelledImage]:
    """Noise with bright rows or bright columns."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 120, (count, 12, 12)).astype(np.uint8)
    labels = ["rows" if number % 2 else "columns" for number in range(count)]
    for image, label in zip(pixels, labels, strict=True):
        (image if label == "rows" else image.T)[generator.integers(2) :: 3] += 120
    return images_of_arrays("stripes", pixels, labels)


def recipe(out: Path, model: str = "cnn-attentive-tiny", **changes: Any) -> Recipe:
    training = Training(
        steps=30,
        learning_rate=0.01,
        warmup=3,
        validate_every=30,
        save_every=15,
        precision="float32",
        schedule="constant",
    )
    usual = {"source": "fashion-mnist", "batch": 16, "augment": False}
    return make_recipe("classify-image", **{**usual, **changes}, model=model, out=out, training=training)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("images") / "run"
    learn(recipe(out), Splits(stripes(128, 1), stripes(32, 2), stripes(32, 3)), CONSOLE)
    return out


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for number, example in enumerate(stripes(8, 5)):
        place = tmp_path / "new" / example.label
        place.mkdir(parents=True, exist_ok=True)
        example.read().save(place / f"{number}.png")
    return tmp_path / "new"


def test_it_learns_and_its_folder_has_all_that_is_needed(folder: Path, files: Path) -> None:
    task = foveate.load(folder)
    assert isinstance(task, Skill)
    reads, writes = task.processor.reads, task.processor.writes
    assert (reads.format.size, reads.format.channels, [*writes.labels]) == (12, 1, ["columns", "rows"])
    found = task.evaluate([files], NoOptions(), CONSOLE)
    assert found.figures["ways"]["cnn-attentive-tiny"]["accuracy"] >= 87.5
    assert found.figures["ways"]["always columns"]["accuracy"] == 50
    decision = task.run(files / "rows/1.png")
    assert sum(decision.probabilities.values()) == pytest.approx(1)
    assert decision.line == f"{files / 'rows/1.png'}\trows\t{decision.probability:.3f}"


def test_run_takes_files_and_folders_and_goes_on_after_a_damaged_one(folder: Path, files: Path, capsys) -> None:
    (files / "rows/0.png").write_bytes(b"no image")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folder), str(files / "columns/2.png"), str(files / "rows")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert [line.split("\t")[0].removeprefix(f"{files}/") for line in out.splitlines()] == [
        "columns/2.png",
        "",
        *(f"rows/{number}.png" for number in (1, 3, 5, 7)),
    ]
    assert "rows/0.png cannot be read as an image" in err


def test_the_most_probable_labels_and_json(folder: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = str(files / "rows/1.png")
    main(["run", str(folder), image, "--top", "2"])
    place, *parts = capsys.readouterr().out.strip().split("\t")
    assert (place, parts[0], parts[2]) == (image, "rows", "columns")
    assert float(parts[1]) + float(parts[3]) == pytest.approx(1, abs=0.002)
    main(["run", str(folder), image, "--json", "--top", "1"])
    found = json.loads(capsys.readouterr().out)
    assert (found["input"], found["label"]) == (image, "rows")
    assert found["probabilities"] == {"rows": found["probability"]}
    with pytest.raises(SystemExit):
        main(["run", str(folder), image, "--top", "0"])


def test_a_picture_of_where_it_looked(folder: Path, files: Path, tmp_path: Path) -> None:
    main(["run", str(folder), str(files / "rows/1.png"), "--picture", str(tmp_path / "look.png")])
    with PIL.Image.open(tmp_path / "look.png") as picture:
        assert picture.width > 100


def test_a_page_shows_the_grid_over_the_image(folder: Path, files: Path, tmp_path: Path) -> None:
    page = tmp_path / "look.html"
    main(["look", str(folder), str(files / "rows/1.png"), "--out", str(page)])
    assert page.stat().st_size > 10_000
    file = File("1.png", (files / "rows/1.png").read_bytes())
    (panel,) = open_model(folder).look(file, 4096).document().sites
    assert panel.keys.picture.height * panel.keys.picture.width == panel.keys.count
    assert panel.queries.picture == panel.keys.picture


def test_a_look_at_what_does_not_attend_or_is_no_image(folder: Path, files: Path, tmp_path: Path, capsys) -> None:
    for given, told in (("a text", "there is no file a text; this model reads an image file"),):
        with pytest.raises(SystemExit) as ended:
            main(["look", str(folder), given, "--out", str(tmp_path / "look.html")])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err


def test_a_resumed_training_has_the_same_weights(folder: Path, tmp_path: Path) -> None:
    splits = Splits(stripes(128, 1), stripes(32, 2), stripes(32, 3))
    half = recipe(tmp_path / "run")
    half.training.steps = 15
    learn(half, splits, CONSOLE)
    learn(recipe(tmp_path / "run"), splits, CONSOLE)
    whole, resumed = (weights(place) for place in (folder, tmp_path / "run"))
    assert len(whole) > 5
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)


def test_a_resumed_training_sees_the_same_changed_images(tmp_path: Path) -> None:
    """Stopped within an epoch: crops, colours, RandAugment, erasing and mixup go on as if nothing had happened."""
    splits, found = Splits(stripes(128, 1), stripes(32, 2), stripes(32, 3)), []
    for stops in ((30,), (13, 30)):
        for steps in stops:
            changes = {"augment": True, "colour": 0.2, "erase": 0.3, "operations": 2, "mixup": 0.4}
            chosen = recipe(tmp_path / str(len(stops)), "cnn-tiny", **changes)
            chosen.training = replace(chosen.training, steps=steps)
            learn(chosen, splits, CONSOLE)
        found.append(weights(tmp_path / str(len(stops))))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Of the checkpoint of step 30."""
    (file,) = folder.glob("checkpoints/step-*30.safetensors")
    return {name: value for name, value in read_tensors(file).tensors.items() if "random" not in name}


def test_what_cannot_be_learned_is_said_before_training(tmp_path: Path) -> None:
    one = images_of_arrays("one", np.zeros((3, 12, 12), np.uint8), ["a"] * 3)
    with pytest.raises(UserError, match="every image has the label 'a'; deciding takes two labels"):
        learn(recipe(tmp_path / "a"), Splits(one, one, one), CONSOLE)
    with pytest.raises(UserError, match="one has the label 'a', which stripes does not have"):
        learn(recipe(tmp_path / "b"), Splits(stripes(8, 1), one, one), CONSOLE)
    with pytest.raises(UserError, match="12 x 12"):
        learn(recipe(tmp_path / "c", "vgg-small-images"), Splits(*[stripes(8, 1)] * 3), CONSOLE)
    with pytest.raises(UserError, match="transformer-tiny is a model for another task"):
        make_recipe("classify-image", model="transformer-tiny")


def test_many_images_are_decided_about_by_a_packed_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch.manual_seed(3)
    chosen = TASK.recipe(model="resnet20", out=tmp_path / "run", architecture={"classes": 3, "channels": 1})
    processor = Processor(AugmentedImage(format=ImageFormat(9, 1)), Label({"a": 1, "b": 1, "c": 1}))
    skill = Skill(TASK, chosen, Lesson(TASK, chosen).build(classes=3).eval(), processor, {})
    images = [PIL.Image.fromarray(pixels) for pixels in np.random.default_rng(3).integers(0, 255, (20, 9, 9), np.uint8)]
    prepared = [processor.reads.prepare(image) for image in images]
    packed = skill.answer_prepared(prepared, ShowLabels())
    monkeypatch.setattr(AugmentedImage, "worth_optimizing", 100)
    plain = skill.answer_prepared(prepared, ShowLabels())
    assert [one.label for one in packed] == [one.label for one in plain]
    assert [one.probability for one in packed] == pytest.approx([one.probability for one in plain], rel=1e-4)
