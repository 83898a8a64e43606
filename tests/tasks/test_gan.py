"""A GAN on two classes of squares: training, resuming, answers, measures, the picture of a place, mistakes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from foveate import tasks
from foveate.data.dataset import Dataset
from foveate.data.images.decoding import read_image
from foveate.data.images.labelled import LabelledImage
from foveate.data.sources import Splits
from foveate.errors import TextError, UserError
from foveate.metrics.gan import deviation_share, frechet
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Training
from foveate.tasks.gan import ClassImages, Judging, Sampling, TrainGAN
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe

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


def task(out: Path, steps: int) -> TrainGAN:
    return TrainGAN(
        out=out,
        examples=ClassImages(batch=16, validation_examples=20),
        training=Training(steps=steps, learning_rate=3e-3, schedule="constant", warmup=1, betas=(0.0, 0.9), clip=None,
                          weight_decay=0.0, validate_every=40, save_every=5, average=1, log_every=10),
        architecture=ARCHITECTURE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "gan"
    task(out, 120).learn(SPLITS)
    return tasks.load(out)


def test_it_generates_what_labels_say(predictor: Predictor, tmp_path: Path) -> None:
    out = tmp_path / "samples.png"
    found = predictor.answer(["left", "right"], Sampling(out=out, samples=5, place=(0, 3)))
    assert [one.line for one in found] == [f"{out}\tleft", f"{out}\tright"]
    assert read_image(out).size == (8 + 5 * 120, 8 + 2 * 120)
    for one, brighter in zip(found, (slice(0, 4), slice(4, 8)), strict=True):
        assert one.pixels[:, 2:6, brighter].mean() > one.pixels.mean() + 20
    figure = predictor.picture(found[0])
    assert any(axes.images for axes in figure.axes)
    with pytest.raises(UserError, match="place is 9 0, but the feature map has 8 x 8 places"):
        predictor.picture(predictor.run("left", Sampling(out=out, place=(9, 0))))


def test_a_run_goes_on_with_another_label(predictor: Predictor, tmp_path: Path) -> None:
    """The labels that it knows keep their places and weights, and a new one comes behind them."""
    others = images("others", 16, 4)
    both = Dataset("both", [replace(one, label="among") if one.label == "left" else one for one in others], "images")
    training = Training(steps=1, validate_every=1, average=1)
    examples = ClassImages(batch=16, validation_examples=20)
    recipe = TrainGAN(start=predictor.task.out, out=tmp_path / "next", examples=examples, training=training)
    model = recipe.build(**predictor.processor.sizes() | {"classes": 3})
    for name, tensor in predictor.model.state_dict().items():
        assert torch.equal(model.state_dict()[name][: len(tensor)], tensor) if tensor.dim() else True
    found = recipe.learn(Splits(both, both, both))
    assert list(found.processor.labels) == ["left", "right", "among"]


def test_measures(predictor: Predictor, tmp_path: Path) -> None:
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
    options = Judging(judge=judge.out, curve=tmp_path / "curve.png")
    metrics = predictor.task.measure(predictor, examples, options).metrics
    predictor.task.open = lambda: (SPLITS.train, SPLITS.dev)  # type: ignore[method-assign]
    baselines = predictor.task.baselines(predictor, examples, options)
    assert metrics["recognised"] >= 80
    assert baselines["the real images"] == {"frechet": pytest.approx(0, abs=1e-6), "spread": 100, "recognised": 100}
    assert baselines["mean image of each class"]["spread"] == 0
    assert read_image(tmp_path / "curve.png").size[0] > 100


def test_a_training_that_was_interrupted_ends_with_the_same_weights(tmp_path: Path) -> None:
    for steps in (5, 10):
        task(tmp_path / "parts", steps).learn(SPLITS)
    task(tmp_path / "whole", 10).learn(SPLITS)
    first, second = (tasks.load(tmp_path / name).model.state_dict() for name in ("parts", "whole"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_mistakes(predictor: Predictor, tmp_path: Path) -> None:
    with pytest.raises(TextError, match="unknown label 'lift'; did you mean left") as raised:
        predictor.answer(["left", "lift"], Sampling(out=tmp_path / "a.png"))
    assert raised.value.place == 1
    with pytest.raises(UserError, match="--judge takes a run of classify-image"):
        predictor.task.measure(predictor, [*SPLITS.test], Judging(judge=predictor.task.out))


def test_a_look_names_places(predictor: Predictor) -> None:
    found = predictor.task.look(predictor, "right", 1000)
    queries, keys = found.tokens["attention.1"]
    assert (queries.height, keys.width) == (8, 8)


def test_distances_by_hand() -> None:
    generator = np.random.default_rng(4)
    one = generator.integers(0, 100, (200, 7, 7, 1)).astype(np.uint8)
    assert frechet(one, one) == pytest.approx(0, abs=1e-6)
    assert frechet(one, one + 51) == pytest.approx(49 * 0.2**2, rel=1e-3)
    labels = np.arange(200) % 2
    assert deviation_share(one, one, labels) == 100
    assert deviation_share(one // 2 * 2 // 2, one, labels) == pytest.approx(50, abs=1)
