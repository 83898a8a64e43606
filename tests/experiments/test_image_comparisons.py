"""Comparisons of image models: what they count, draw and learn from a training's log."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

from foveate import create
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import LabelledImage
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.experiments import compare, image_rows, imagenet, vision_compute, vit_choices
from foveate.experiments.degradation import Degradation, ErrorPoint, read_points
from foveate.experiments.drawing import panels
from foveate.experiments.identity import Identity, deepen
from foveate.experiments.imagenet import ImageNet
from foveate.experiments.vision_compute import VisionCompute

QUIET = Console(file=StringIO())


@pytest.mark.parametrize(("preset", "identity"), [("resnet20", False), ("plain20", True)])
def test_a_net_deepened_by_the_identity_equals_the_shallower_one(preset: str, identity: bool) -> None:
    """Of a residual net weights of zero are the identity; a plain one needs it written into its weights."""
    shallow = create(preset, classes=5, channels=1).double().eval()
    pixels = torch.randn(3, 1, 13, 11, dtype=torch.float64)
    deep = deepen(shallow, (4, 3, 5), 0.0, identity)
    assert sum(isinstance(layer, torch.nn.Conv2d) for layer in deep.modules()) == 19 + 2 * 3
    torch.testing.assert_close(deep(pixels).logits, shallow(pixels).logits)
    off = deepen(shallow, (4, 3, 5), 0.5, identity)
    assert (off(pixels).logits - shallow(pixels).logits).abs().max() > 1e-3


def test_plain_layers_of_zeros_lose_the_image() -> None:
    deep = deepen(create("plain20", classes=5, channels=1).eval(), (4, 3, 3), 0.0, False)
    first, second = deep(torch.randn(2, 1, 13, 11)).logits
    assert torch.equal(first, second)


def test_what_is_left_of_the_shallower_net() -> None:
    found = compare("identity", Identity(blocks=(4, 4, 4), scales=(0.0, 1.0), images=5, side=7), QUIET)
    assert found.tables[0].rows[0] == ["0", "1.000", "0.000", "1.000"]
    assert [part["scale"] for part in found.raw] == [0.0, 1.0] * 3
    assert found.raw[0]["difference"] == 0
    with pytest.raises(UserError, match="blocks are 2 3 3, but must be 3 numbers, each at least 3"):
        compare("identity", Identity(blocks=(2, 3, 3)), QUIET)


def test_imagenet_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 224 x 224, ResNet-18 has 1.814 billion multiplications and additions (torchvision's figure: 1.81)."""
    monkeypatch.setattr(imagenet, "WINNERS", {"alexnet": ("AlexNet", 16.4)})
    monkeypatch.setattr(imagenet, "LATER", {"resnet18": ("ResNet-18", 69.8)})
    found = compare("imagenet", ImageNet(), QUIET)
    assert found.tables[0].rows == [["AlexNet", "`alexnet`", "16.4", "61.0", "1.4"]]
    assert found.raw[1]["parameters"] == 11_689_512
    assert found.raw[1]["flops"] == 2 * 1_814_073_344


def test_curves_of_trainings(tmp_path: Path) -> None:
    """Training error is the mean of the lines since the validation before."""
    lines = [
        {"step": 50, "accuracy": 0.5},
        {"step": 100, "accuracy": 0.75},
        {"step": 100, "validation": {"accuracy": 70.0}},
        {"step": 150, "accuracy": 0.875},
        {"step": 200, "validation": {"accuracy": 80.5}},
    ]
    for preset in ("plain20", "resnet20"):
        (tmp_path / preset).mkdir()
        (tmp_path / preset / "model.safetensors").touch()
        (tmp_path / preset / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    points = read_points("plain20", tmp_path / "plain20" / "metrics.jsonl")
    assert points == [ErrorPoint("plain20", 100, 37.5, 30.0), ErrorPoint("plain20", 200, 12.5, 19.5)]
    found = compare("degradation", Degradation(presets=("plain20", "resnet20"), runs=tmp_path), QUIET)
    assert found.tables[0].rows == [["`plain20`", "12.50", "19.50"], ["`resnet20`", "12.50", "19.50"]]
    (tmp_path / "plain20" / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match="has no validation"):
        read_points("plain20", tmp_path / "plain20" / "metrics.jsonl")


def image(number: int) -> LabelledImage:
    """A grey image that is light above or below."""
    pixels = np.random.default_rng(number).integers(0, 90, (4, 4), dtype=np.uint8)
    label = number % 2
    pixels[2 * label : 2 * label + 2] += 160
    return LabelledImage(str(number), ["above", "below"][label], lambda: PIL.Image.fromarray(pixels))


@pytest.fixture
def few_images(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Dataset(name, [image(number) for number in range(*limits)]) for name, limits in PARTS.items()]
    monkeypatch.setattr(image_rows, "open_source", lambda *_, **__: Splits(*parts))


PARTS = {"train": (0, 40), "dev": (40, 60), "test": (60, 70)}


@pytest.mark.usefixtures("few_images")
def test_choices_of_a_vision_transformer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {**vit_choices.BASE, "width": 16, "feedforward": 32, "layers": 1}
    monkeypatch.setattr(vit_choices, "BASE", small)
    monkeypatch.setattr(vit_choices, "CHOICES", {"patch": {"2 x 2": {}, "1 x 1": {"patch": 1}}})
    monkeypatch.setattr(vit_choices, "panels", lambda *_, **how: panels(1, 3, **how))
    options = vit_choices.ViTChoices(out=tmp_path, choices=("patch",), size=4, batch=10, steps=30, rate=1e-2)
    found = compare("vit-choices", options, QUIET)
    assert [row[0] for row in found.tables[0].rows] == ["patch: 2 x 2", "patch: 1 x 1"]
    assert float(found.tables[0].rows[0][1]) > 80
    assert found.raw["patch"]["1 x 1"]["steps"] == 30
    monkeypatch.setattr(image_rows.ImageRows, "_train", lambda *_: pytest.fail("trained again"))
    assert compare("vit-choices", options, QUIET).raw == found.raw
    with pytest.raises(UserError, match="steps is 0, but must be at least 1"):
        compare("vit-choices", vit_choices.ViTChoices(steps=0), QUIET)


@pytest.mark.usefixtures("few_images")
def test_windows_of_a_vision_transformer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each radius is a row; rows of other choices do not matter to it."""
    trained = []

    def train(self: Any, preset: str, changes: dict[str, Any], *_: Any) -> image_rows.ImageRow:
        trained.append(changes.get("window"))
        return image_rows.ImageRow(50.0, 7, 3, 11, 2.0)

    monkeypatch.setattr(image_rows.ImageRows, "_train", train)
    compare("vit-choices", vit_choices.ViTChoices(out=tmp_path, choices=("radius",)), QUIET)
    assert trained == [1, 2, 3, None]
    compare("vit-choices", vit_choices.ViTChoices(out=tmp_path, choices=("radius", "pooling")), QUIET)
    assert trained[4:] == [None, None]  # pooling by the mean and by attention
    with pytest.raises(UserError, match="unknown choice 'heats'; did you mean heads"):
        compare("vit-choices", vit_choices.ViTChoices(choices=("heats",)), QUIET)


@pytest.mark.usefixtures("few_images")
def test_rows_of_equal_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {"patch": 2, "width": 8, "feedforward": 16, "heads": 2, "dropout": 0.0}
    models = {"small": ("vit-tiny", {**tiny, "layers": 1}), "twice": ("vit-tiny", {**tiny, "layers": 3})}
    monkeypatch.setattr(vision_compute, "MODELS", models)
    options = VisionCompute(out=tmp_path, size=4, batch=10, budgets=(1e-6, 4e-6), rate=1e-2)
    raw = compare("vision-compute", options, QUIET).raw
    for (less, more), other in zip(raw.values(), reversed(raw.values()), strict=True):
        assert less["flops"] == pytest.approx(1e6, rel=0.2)
        assert more["flops"] == pytest.approx(4e6, rel=0.2)
        assert more["steps"] == pytest.approx(4 * less["steps"], abs=2)
        assert less["steps"] != other[0]["steps"]
    with pytest.raises(UserError, match=r"budgets are \(\), but must be one or more numbers above 0"):
        compare("vision-compute", VisionCompute(budgets=()), QUIET)
