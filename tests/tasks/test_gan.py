"""A GAN on two classes of squares: training, resuming, answers, measures, the picture of a place, mistakes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.decoding import read_image
from foveate.data.images.labelled import LabelledImage
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.class_images import JudgeOptions, SampleOptions
from foveate.metrics.gan import deviation_share, frechet
from foveate.tasks.gan import TASK
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training

ARCHITECTURE = {"noise": 8, "generator": (16, 16), "discriminator": (16, 16), "discriminator_attends_after": (1,)}


def images(name: str, count: int, seed: int) -> Dataset[LabelledImage]:
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        pixels = generator.integers(0, 30, (8, 8)).astype(np.uint8)
        label = ("left", "right")[number % 2]
        pixels[2:6, 4 * (number % 2) : 4 + 4 * (number % 2)] = generator.integers(180, 250)
        found.append(LabelledImage(f"image {number}", label, lambda pixels=pixels: PIL.Image.fromarray(pixels)))
    return Dataset(name, found, "images")


SPLITS = Splits(images("train", 64, 1), images("dev", 20, 2), images("test", 20, 3))


def task(out: Path, steps: int) -> Recipe:
    training = Training(steps=steps, learning_rate=3e-3, schedule="constant", warmup=1, betas=(0.0, 0.9), clip=None,
                        weight_decay=0.0, validate_every=40, save_every=5, average=1, log_every=10)  # fmt: skip
    return make_recipe("gan", out=out, batch=16, validation_examples=20, training=training, architecture=ARCHITECTURE)


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "gan"
    learn(task(out, 120), SPLITS)
    found: Any = foveate.load(out)
    assert isinstance(found, Skill)
    return found


def test_it_generates_what_labels_say(skill: Skill, tmp_path: Path) -> None:
    out = tmp_path / "samples.png"
    found = skill.answer(["left", "right"], SampleOptions(out=out, samples=5, place=(0, 3)))
    assert [one.line for one in found] == [f"{out}\tleft", f"{out}\tright"]
    assert read_image(out).size == (8 + 5 * 120, 8 + 2 * 120)
    for one, brighter in zip(found, (slice(0, 4), slice(4, 8)), strict=True):
        assert one.pixels[:, 2:6, brighter].mean() > one.pixels.mean() + 20
    figure = skill.picture(found[0])
    assert any(axes.images for axes in figure.axes)
    with pytest.raises(UserError, match="place is 9 0, but the feature map has 8 x 8 places"):
        skill.picture(skill.run("left", SampleOptions(out=out, place=(9, 0))))


def test_a_run_goes_on_with_another_label(skill: Skill, tmp_path: Path) -> None:
    """The labels that it knows keep their places and weights, and a new one comes behind them."""
    others = images("others", 16, 4)
    both = Dataset("both", [replace(one, label="among") if one.label == "left" else one for one in others], "images")
    training = Training(steps=1, validate_every=1, average=1)
    recipe = make_recipe(
        "gan", start=skill.folder, out=tmp_path / "next", batch=16, validation_examples=20, training=training
    )
    model = Lesson(TASK, recipe).build(**skill.processor.sizes() | {"classes": 3})
    for name, tensor in skill.model.state_dict().items():
        assert torch.equal(model.state_dict()[name][: len(tensor)], tensor) if tensor.dim() else True
    found = learn(recipe, Splits(both, both, both))
    assert list(found.processor.reads.labels) == ["left", "right", "among"]


def test_measures(skill: Skill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = make_recipe(
        "classify-image",
        out=tmp_path / "judge",
        model="cnn-tiny",
        batch=16,
        augment=False,
        training=Training(steps=25, learning_rate=5e-3, warmup=2, validate_every=25, average=1),
        architecture={"blocks": (1, 1), "widths": (8, 8)},
    )
    learn(judge, SPLITS)
    examples = [*SPLITS.test]
    options = JudgeOptions(judge=judge.out, curve=tmp_path / "curve.png")
    metrics = skill.measure(examples, options)[1]
    monkeypatch.setattr(Skill, "train_examples", lambda self: SPLITS.train)
    baselines = skill.baselines(examples, options)
    assert metrics["recognised"] >= 80
    assert baselines["the real images"] == {"frechet": pytest.approx(0, abs=1e-6), "spread": 100, "recognised": 100}
    assert baselines["mean image of each class"]["spread"] == 0
    assert read_image(tmp_path / "curve.png").size[0] > 100


def test_a_training_that_was_interrupted_ends_with_the_same_weights(tmp_path: Path) -> None:
    for steps in (5, 10):
        learn(task(tmp_path / "parts", steps), SPLITS)
    learn(task(tmp_path / "whole", 10), SPLITS)
    first, second = (foveate.load(tmp_path / name).model.state_dict() for name in ("parts", "whole"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_mistakes(skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, picture = tmp_path / "a.png", tmp_path / "picture.png"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(skill.folder), "lift", "left", "", "--out", str(out), "--picture", str(picture), "--json"])
    assert ended.value.code == 2
    printed, told = capsys.readouterr()
    wrong, right, empty = map(json.loads, printed.splitlines())
    assert wrong["error"].startswith("unknown label 'lift'; did you mean left")
    assert wrong["error"] in told
    assert right == {"input": "left", "label": "left", "file": str(out)}
    assert empty["input"] == ""
    assert read_image(out).size == (8 + 8 * 120, 8 + 120)
    assert picture.exists()
    with pytest.raises(UserError, match="unknown label 'lift'"):
        skill.run("lift")
    with pytest.raises(UserError, match="--judge takes a run of classify-image"):
        skill.measure([*SPLITS.test], JudgeOptions(judge=skill.folder))


def test_damaged_images_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, example in enumerate(images("files", 30, 5)):
        place = tmp_path / "photos" / example.label
        place.mkdir(parents=True, exist_ok=True)
        example.read().save(place / f"{number}.png")
    (tmp_path / "photos/left/0.png").write_text("no image")
    sizes = ["--architecture.generator", "8", "8", "--architecture.discriminator", "8", "8", "--batch", "8"]
    quick = ["--steps", "1", "--validate-every", "1", "--average", "1", "--threads", "1"]
    out = str(tmp_path / "run")
    main(["train", "gan", "--data", str(tmp_path / "photos"), "--size", "8", *sizes, *quick, "--out", out])
    assert "left out: 1 image that cannot be read" in capsys.readouterr().err
    main(["eval", out, "--data", str(tmp_path / "photos"), "--json"])
    assert json.loads(capsys.readouterr().out)["images"] == 29


def test_a_look_names_places(skill: Skill) -> None:
    found = open_model(skill.folder).look("right", 1000)
    queries, keys = found.tokens["attention.1"]
    assert (queries.height, keys.width) == (8, 8)
    assert found.title == "right"
    with pytest.raises(UserError, match="unknown label 'lift'"):
        skill.look("lift")


def test_distances_by_hand() -> None:
    generator = np.random.default_rng(4)
    one = generator.integers(0, 100, (200, 7, 7, 1)).astype(np.uint8)
    assert frechet(one, one) == pytest.approx(0, abs=1e-6)
    assert frechet(one, one + 51) == pytest.approx(49 * 0.2**2, rel=1e-3)
    labels = np.arange(200) % 2
    assert deviation_share(one, one, labels) == 100
    assert deviation_share(one // 2 * 2 // 2, one, labels) == pytest.approx(50, abs=1)
