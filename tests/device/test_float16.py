"""Steps of training in float16 on a pretended accelerator: its autocast acts, and the scale of the loss costs no
reading of its own."""

import sys
from pathlib import Path

import pytest
from pretended import DEVICE, REAL, pretended_device

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from tiny_training import TinyBatches, TinyModel

from foveate.training import CrossEntropy, Training
from foveate.training.loss_scale import LossScale
from foveate.training.update import Update, Updater


def steps(device: str, precision: str) -> tuple[list[Update], Updater]:
    model = TinyModel()
    model.dropout.p = 0.0
    updater = Updater(model, CrossEntropy(0.1), Training(device=device, precision=precision))
    if updater.loss_scale is not None:
        updater.loss_scale = LossScale(2.0**8)  # nothing overflows
    return [updater([TinyBatches().batch(0, number)], 0.01, number + 1) for number in range(3)], updater


def test_steps() -> None:
    expected, _ = steps("cpu", "float32")
    with pretended_device() as crossings:
        found, updater = steps(DEVICE.type, "float16")
        assert REAL or crossings["tolist"] == len(found)
        assert updater.loss_scale == LossScale(2.0**8, 3)
        crossings.clear()
        updater.loss_scale = LossScale(2.0**50)
        updater([TinyBatches().batch(0, 4)], 0.01, 4)
        assert updater.loss_scale.factor < 2.0**40
        assert REAL or crossings["tolist"] > 10, "each halving is a reading, and a step that is computed again"
    for step, (one, other) in enumerate(zip(found, expected, strict=True)):
        near = 0.1 if step else 5e-3  # the first step has the first weights
        assert one.sums["loss"] == pytest.approx(other.sums["loss"], rel=near)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=near)
        assert one.gradient_norm != other.gradient_norm
