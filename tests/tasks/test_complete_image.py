"""Image completion: training, the numbers of colours, completions, measures, a linear probe, mistakes."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from foveate import models, tasks
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ImageFormat, LabelledImage
from foveate.data.images.pixel_processor import PixelProcessor
from foveate.data.images.processor import normalize
from foveate.data.sources import Splits
from foveate.errors import UserError
from foveate.models.vision.imagegpt import ImageGPTConfig
from foveate.tasks.complete_image import CompleteImage, Completing, Unlabelled
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Training
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.protocols import NoOptions

TINY = {"width": 24, "heads": 2, "feedforward": 48, "layers": 1}


def image(number: int) -> LabelledImage:
    """Stripes from top to bottom, whose colour each column repeats."""
    pixels = np.tile(np.random.default_rng(number).choice([0, 255], 5).astype(np.uint8), (5, 1))
    return LabelledImage(
        f"image {number}", "dark" if pixels[0, 0] < 100 else "light", lambda: PIL.Image.fromarray(pixels)
    )


def images(name: str, start: int, count: int) -> Dataset[LabelledImage]:
    return Dataset(name, [image(number) for number in range(start, start + count)], "images")


SPLITS = Splits(images("train", 0, 200), images("dev", 200, 12), images("test", 220, 12))


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "pixels"
    task = CompleteImage(
        out=out,
        examples=Unlabelled(batch=16, levels=2, size=5),
        training=Training(
            steps=300,
            learning_rate=2e-2,
            schedule="cosine",
            warmup=10,
            validate_every=300,
            average=1,
            label_smoothing=0,
        ),
        architecture=TINY,
    )
    task.learn(SPLITS)
    return tasks.load(out)


@pytest.mark.parametrize(("levels", "channels"), [(8, 1), (2, 3), (3, 3)])
def test_colours_are_those_of_the_model(levels: int, channels: int) -> None:
    processor = PixelProcessor(ImageFormat(7, channels), levels)
    pixels = np.random.default_rng(3).integers(0, 256, (5, channels, 7, 7)).astype(np.uint8)
    config = ImageGPTConfig(1, channels, 7, levels**channels, 8, 2, 8, 1)
    model = models.build("imagegpt", config)
    expected = model.quantize(normalize(pixels)).flatten(1)
    colours = processor.colours(pixels)
    assert np.array_equal(colours, expected.numpy())
    again = processor.images(colours).transpose(0, 3, 1, 2)
    assert np.array_equal(processor.colours(again), colours)


def test_it_learns_that_columns_repeat(predictor: Predictor) -> None:
    metrics = predictor.task.measure(predictor, list(SPLITS.test), NoOptions()).metrics
    assert metrics["bits"] < 0.5  # 1 bit for each pixel of the first row, so 0.2 of all
    assert metrics["accuracy"] > 80


def test_completions_go_on_from_what_is_given(predictor: Predictor, tmp_path: Path) -> None:
    image(90).read().save(tmp_path / "a.png")
    (tmp_path / "b.png").write_text("no image")
    options = Completing(out=tmp_path / "out.png", samples=2, given=0.4, temperature=0)
    found = predictor.answer([str(tmp_path / "a.png"), str(tmp_path / "b.png")], options)
    assert [each.line.endswith("out.png") for each in found] == [True, False]
    with PIL.Image.open(tmp_path / "out.png") as page:
        pixels = np.asarray(page.convert("L"))
    side = 5 * (112 // 5)
    whole, drawn = (pixels[8 : 8 + side, left : left + side] for left in (8, 8 + 2 * (side + 8)))
    assert (whole == drawn).mean() > 0.75


def test_baselines_count_colours(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompleteImage, "open", lambda self: (SPLITS.train, SPLITS.dev))
    ways = predictor.task.baselines(predictor, list(SPLITS.test), NoOptions())
    first, second, third = ways.values()
    assert first["bits"] == pytest.approx(1, abs=0.05)
    assert second["bits"] == pytest.approx(1, abs=0.1)
    assert 0.15 < third["bits"] < 0.4


def test_a_linear_probe_begins_from_it(predictor: Predictor, tmp_path: Path) -> None:
    task = make_recipe(
        "classify-image",
        start=predictor.folder,
        out=tmp_path / "probe",
        batch=16,
        augment=False,
        size=5,
        architecture={**TINY, "colours": 2, "image_size": 5},
        training=Training(steps=2, freeze=("embedding", "stack"), validate_every=2, average=1),
    )
    assert task.model == "imagegpt-tiny"
    probe = learn(task, SPLITS)
    body, trained = predictor.model.state_dict(), probe.model.state_dict()
    assert all(torch.equal(body[name], trained[name]) for name in body if not name.startswith("output"))
    assert probe.model.config.predict == "label"


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder of images"):
        CompleteImage(out=tmp_path / "a").read([tmp_path / "missing"])
    with pytest.raises(UserError, match="there is no image in it"):
        CompleteImage(out=tmp_path / "a").read([tmp_path])
    with pytest.raises(UserError, match="given is 1, but must be at least 0 and below 1"):
        Completing(given=1).check()
    with pytest.raises(UserError, match="levels is 1, but must be at least 2"):
        Unlabelled(levels=1).check()
