"""The linear probe: what it fits, what it reads of a model, and which layer it chooses."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

from foveate import models
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ImageFormat, LabelledImage
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.experiments import compare, linear_probe
from foveate.experiments.linear_probe import LinearProbe, fit, probe, read_features
from foveate.forms.image import AugmentedImage
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.tasks.classify_image import TASK
from foveate.tasks.learning import Lesson
from foveate.tasks.skill import Skill

SMALL = {"image_size": 3, "colours": 5, "width": 8, "heads": 2, "feedforward": 7, "layers": 2}


def image(number: int) -> LabelledImage:
    """A grey image that is light or dark, with noise."""
    pixels = np.random.default_rng(number).integers(0, 90, (3, 3), dtype=np.uint8) + np.uint8(150 * (number % 2))
    return LabelledImage(f"{number}", ["dark", "light"][number % 2], lambda: PIL.Image.fromarray(pixels))


def part(first: int, count: int) -> Dataset[LabelledImage]:
    return Dataset("shades", [image(first + number) for number in range(count)], "images")


@pytest.fixture
def predictor(tmp_path: Path) -> Skill:
    torch.manual_seed(1)
    recipe = TASK.recipe(model="imagegpt-tiny", out=tmp_path / "run", architecture={**SMALL, "classes": 2})
    processor = Processor(AugmentedImage(format=ImageFormat(3, 1)), Label({"dark": 1, "light": 1}))
    return Skill(TASK, recipe, Lesson(TASK, recipe).build(classes=2).eval(), processor, {})


def test_logistic_regression_is_at_its_minimum() -> None:
    """There the gradient of the loss is 0; a heavier decay makes smaller weights."""
    torch.manual_seed(2)
    features, labels = torch.randn(53, 5), torch.randint(3, (53,))
    sizes = []
    for decay in (1e-3, 1e-1):
        classifier = fit(features, labels, 3, decay)
        loss = torch.nn.functional.cross_entropy(classifier(features), labels)
        (loss + decay * classifier.weight.square().sum()).backward()
        assert classifier.weight.grad is not None
        assert classifier.weight.grad.abs().max() < 1e-4
        sizes.append(float(classifier.weight.detach().norm()))
    assert sizes[1] < sizes[0] / 2


def test_validation_chooses_the_classifier() -> None:
    """Where validation images are labelled the other way round, the least bad classifier is kept, and tested."""
    torch.manual_seed(3)
    features = [torch.randn(count, 2) for count in (101, 31, 37)]
    labels = [(part[:, 0] > 0).long() for part in features]
    validation, test = probe(features, labels, 2)
    assert min(validation, test) > 90
    assert probe(features, [labels[0], 1 - labels[1], labels[2]], 2)[0] < 10


def test_features_of_all_layers(predictor: Skill) -> None:
    examples = list(part(0, 5))
    found = read_features(predictor, examples, 2)
    assert [*found] == ["pixels", "embeddings", "layer 1", "layer 2"]
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "pixels": (5, 9),
        **dict.fromkeys([*found][1:], (5, 8)),
    }
    reads = predictor.processor.reads
    pixels = reads.tensors([reads.prepare(one.read()) for one in examples])[0]["pixels"]
    model = predictor.model
    with torch.no_grad():
        colours = model.quantize(pixels).flatten(1)  # type: ignore[operator]
        embedded = model.stack.positions(model.embedding(colours), 0, None)  # type: ignore[operator,union-attr]
    torch.testing.assert_close(found["embeddings"], embedded.mean(1))
    last = model.stack.blocks[-1]  # type: ignore[index,union-attr]
    assert not last._forward_hooks
    assert not torch.equal(found["layer 1"], found["layer 2"])


def test_a_table_and_a_picture(predictor: Skill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_probe.tasks, "load", lambda _: predictor)
    splits = Splits(part(0, 40), part(100, 20), part(200, 20))
    monkeypatch.setattr(linear_probe, "open_source", lambda *_, **__: splits)
    found = compare("linear-probe", LinearProbe(batch=7, images=50), Console(quiet=True))
    assert [row[0] for row in found.tables[0].rows] == ["pixels", "embeddings", "layer 1", "layer 2"]
    assert found.raw[0]["test"] == 100  # light and dark: a linear classifier of the pixels tells them apart
    assert "Validation images choose " in found.notes[0]
    assert found.figures[""] is not None


def test_a_model_without_such_layers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = TASK.recipe(model="cnn-tiny", out=tmp_path / "run", architecture={"classes": 2})
    processor = Processor(AugmentedImage(format=ImageFormat(3, 1)), Label({"a": 1}))
    other = Skill(TASK, recipe, models.create("cnn-tiny", classes=2), processor, {})
    monkeypatch.setattr(linear_probe.tasks, "load", lambda _: other)
    with pytest.raises(UserError, match="has no Image GPT or vision Transformer: only their layers are probed"):
        compare("linear-probe", LinearProbe(), Console(quiet=True))
