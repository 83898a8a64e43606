"""Comparisons of `foveate bench` on another device than the CPU: what they make is on it, and nothing meets what is
not."""

from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from pretended import NAME, pretended_device
from rich.console import Console

from foveate.cli.parse import parse
from foveate.errors import UserError
from foveate.experiments import COMPARISONS, compare, comparison_module
from foveate.experiments.comparison import DeviceOptions, Options
from foveate.experiments.copying import Copying
from foveate.experiments.distant_marks import DistantMarks
from foveate.experiments.dot_scaling import DotScaling
from foveate.experiments.identity import Identity
from foveate.experiments.layers import Layers
from foveate.experiments.mechanisms import Mechanisms
from foveate.experiments.norms import Norms
from foveate.experiments.positions import Positions
from foveate.experiments.products import Products
from foveate.experiments.scores import Scores
from foveate.experiments.vanishing import Vanishing

PROSE = Path(__file__)
"""A text for those that read one."""

MADE: dict[str, DeviceOptions] = {
    "copying": Copying(lengths=(2, 3), steps=2, batch_tokens=8, width=4, vocabulary=5),
    "dot-scaling": DotScaling(widths=(2, 3), positions=5, repeats=1),
    "identity": Identity(images=2, side=8, blocks=(3, 3, 3), scales=(0.0, 1.0)),
    "layers": Layers(lengths=(8, 16), widths=(4, 8), head_width=4, radius=3, repeats=1),
    "distant-marks": DistantMarks(side=12, distances=(4, 8), width=4, steps=2, batch=3, tested=4),
    "mechanisms": Mechanisms(
        steps=1, batch=2, length=3, pairs=3, vocabulary=5, context=8, width=8, side=4, long=9, repeats=1, data=(PROSE,)
    ),
    "norms": Norms(depths=(1,), learning_rates=(1e-3,), steps=2, width=8, length=5, vocabulary=7, batch=3),
    "positions": Positions(length=6, lengths=(6, 9), back=1, vocabulary=5, steps=2, width=8),
    "products": Products(widths=(2, 3), side=4, repeats=1),
    "scores": Scores(lengths=(2, 3), head_width=4, items=2, names=3, width=4, steps=2, repeats=1),
    "vanishing": Vanishing(lengths=(2, 5), width=3, repeats=1),
}
"""Comparisons that make all their tensors themselves, in the smallest sizes."""

TRAINED = {
    "bottleneck",
    "degradation",
    "heads",
    "scaling-law",
    "translation",
    "vision-compute",
    "vit-choices",
    "windows",
}
"""Comparisons of trainings, which take the device as `foveate train` does."""

ADDRESSED = {"teacher-forcing"}
"""Comparisons that ask tensors for their place in memory, which those of the pretended device do not have."""

COUNTED = {"elmo-features", "imagenet", "linear-probe", "ngrams", "parallel", "prompting", "traces"}
"""Comparisons that count, or ask a trained model: without the option."""


def test_every_comparison_that_computes_takes_a_device() -> None:
    with_device = {name for name in COMPARISONS if issubclass(comparison_module(name).OPTIONS, DeviceOptions)}
    assert with_device == COMPARISONS.keys() - COUNTED
    assert with_device == MADE.keys() | TRAINED | ADDRESSED


@pytest.mark.parametrize("name", MADE)
def test_tensors_are_made_on_the_device(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that meets a tensor of the CPU fails there."""
    monkeypatch.setattr("foveate.experiments.choose_device", lambda given: torch.device(given))
    monkeypatch.setattr("torch.accelerator.synchronize", lambda: None)
    # The pretended device has no tensors of inference.
    monkeypatch.setattr("torch.inference_mode", lambda mode=True: torch.no_grad() if mode else nullcontext())
    for measure in ("memory_allocated", "max_memory_allocated", "reset_peak_memory_stats"):
        monkeypatch.setattr(f"torch.accelerator.{measure}", lambda: 0)
    with pretended_device() as crossings:
        found = compare(name, replace(MADE[name], device=NAME, out=tmp_path), Console(file=StringIO()))
        assert torch.get_default_device().type == "cpu"
    assert found.tables[0].rows
    assert crossings or name == "products", "nothing was read from the device"  # products alone are only timed
    assert f"and {NAME}" in found.conditions


def test_a_device_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    options: Any = parse(comparison_module("products").OPTIONS, ["--device", "no-such"], "bench products")
    assert isinstance(options, Options)
    with pytest.raises(UserError, match="device 'no-such' cannot be used on this machine"):
        compare("products", replace(options, out=tmp_path), Console(file=StringIO()))
