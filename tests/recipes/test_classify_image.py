"""Image classification from end to end: trained, saved, loaded, used, measured."""

from io import StringIO
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

import foveate
from foveate.bundle import read_tensors
from foveate.cli import main
from foveate.data import Splits
from foveate.data.images import LabelledImages
from foveate.errors import UserError
from foveate.recipes.classify_image import ClassifyImage, Images, run
from foveate.recipes.image_classifier import ImageClassifier
from foveate.training import Training

CONSOLE = Console(file=StringIO())


def stripes(count: int, seed: int) -> LabelledImages:
    """Noise with bright rows or bright columns."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 120, (count, 12, 12)).astype(np.uint8)
    labels = ["rows" if number % 2 else "columns" for number in range(count)]
    for image, label in zip(pixels, labels, strict=True):
        (image if label == "rows" else image.T)[generator.integers(2) :: 3] += 120
    return LabelledImages.from_arrays("stripes", pixels, labels)


def recipe(out: Path, model: str = "cnn-attentive-tiny") -> ClassifyImage:
    training = Training(
        steps=30,
        learning_rate=0.01,
        warmup=3,
        validate_every=30,
        save_every=15,
        precision="float32",
        schedule="constant",
    )
    return ClassifyImage(
        text=Images(source="fashion-mnist", batch=16, augment=False),
        model=model,
        out=out,
        training=training,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("images") / "run"
    run(recipe(out), Splits(stripes(128, 1), stripes(32, 2), stripes(32, 3)), CONSOLE)
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
    assert isinstance(task, ImageClassifier)
    assert (task.image_format.size, task.image_format.channels, [*task.labels]) == (12, 1, ["columns", "rows"])
    found = task.evaluate([files], task.eval_options({}, ""), CONSOLE)
    assert found.figures["ways"]["cnn-attentive-tiny"]["accuracy"] >= 87.5
    assert found.figures["ways"]["always columns"]["accuracy"] == 50
    decision = task.run(files / "rows/1.png")
    assert sum(decision.probabilities.values()) == pytest.approx(1)
    assert decision.line == f"{files / 'rows/1.png'}\trows\t{decision.probability:.3f}"


def test_run_takes_files_and_folders_and_goes_on_after_a_damaged_one(folder: Path, files: Path, capsys) -> None:
    (files / "rows/0.png").write_bytes(b"no image")
    main(["run", str(folder), str(files / "columns/2.png"), str(files / "rows")])
    out, err = capsys.readouterr()
    assert [line.split("\t")[0].removeprefix(f"{files}/") for line in out.splitlines()] == [
        "columns/2.png",
        "",
        *(f"rows/{number}.png" for number in (1, 3, 5, 7)),
    ]
    assert "rows/0.png cannot be read as an image" in err


def test_a_picture_of_where_it_looked(folder: Path, files: Path, tmp_path: Path) -> None:
    main(["run", str(folder), str(files / "rows/1.png"), "--picture", str(tmp_path / "look.png")])
    with PIL.Image.open(tmp_path / "look.png") as picture:
        assert picture.width > 100


def test_a_page_is_refused_with_the_command_that_draws(folder: Path, files: Path, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["look", str(folder), str(files / "rows/1.png"), "--out", str(tmp_path / "look.html")])
    assert ended.value.code == 2
    assert f"`foveate run {folder} IMAGE --picture FILE` draws where it looks" in capsys.readouterr().err


def test_a_look_names_the_places_of_the_grid(folder: Path, files: Path) -> None:
    reading = foveate.load(folder).reading(str(files / "rows/1.png"))
    side = round(reading.length**0.5)
    assert side**2 == reading.length == len(reading.pieces)
    assert reading.pieces[:2] == ["1,1", "1,2"]
    assert reading.pieces[-1] == f"{side},{side}"


def test_a_resumed_training_has_the_same_weights(folder: Path, tmp_path: Path) -> None:
    splits = Splits(stripes(128, 1), stripes(32, 2), stripes(32, 3))
    half = recipe(tmp_path / "run")
    half.training.steps = 15
    run(half, splits, CONSOLE)
    run(recipe(tmp_path / "run"), splits, CONSOLE)
    whole, resumed = (weights(place) for place in (folder, tmp_path / "run"))
    assert len(whole) > 5
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Of the checkpoint of step 30."""
    (file,) = folder.glob("checkpoints/step-*30.safetensors")
    return {name: value for name, value in read_tensors(file).tensors.items() if "random" not in name}


def test_what_cannot_be_learned_is_said_before_training(tmp_path: Path) -> None:
    one = LabelledImages.from_arrays("one", np.zeros((3, 12, 12), np.uint8), ["a"] * 3)
    with pytest.raises(UserError, match="every image has the label 'a'; deciding takes two labels"):
        run(recipe(tmp_path / "a"), Splits(one, one, one), CONSOLE)
    with pytest.raises(UserError, match="one has the label 'a', which stripes does not have"):
        run(recipe(tmp_path / "b"), Splits(stripes(8, 1), one, one), CONSOLE)
    with pytest.raises(UserError, match="12 x 12"):
        run(recipe(tmp_path / "c", "vgg-small-images"), Splits(*[stripes(8, 1)] * 3), CONSOLE)
    with pytest.raises(UserError, match="transformer-tiny is a model for another task"):
        ClassifyImage(model="transformer-tiny")
