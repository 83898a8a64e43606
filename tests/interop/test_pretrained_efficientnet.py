"""EfficientNet-Lite0 by name: converted from a pickle of tensors, for our pixels."""

import io
import pickle
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate import create
from foveate.data.images.pixels import normalize
from foveate.interop.keys.efficientnet import lite_package
from foveate.interop.pretrained import efficientnet
from foveate.tasks.start.weights import open_start


def test_pixels_of_ours_give_what_pixels_of_theirs_did() -> None:
    torch.manual_seed(1)
    model = create("efficientnet-lite0-16", classes=3).eval()
    model.stem.norm.running_mean.normal_()
    pixels = np.random.default_rng(1).integers(0, 256, (2, 3, 33, 41)).astype(np.uint8)
    with torch.no_grad():
        before = model.stem((torch.from_numpy(pixels).float() - 127) / 128)
        model.load_state_dict(efficientnet.for_our_pixels(model.state_dict()))
        after = model.stem(normalize(pixels))
    inside = (slice(None), slice(None), slice(1, -1), slice(1, -1))  # the border sees the padding
    torch.testing.assert_close(after[inside], before[inside], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(after, before, rtol=0, atol=0.05)


def test_names_are_told_apart() -> None:
    assert efficientnet.unique(["jay", "missile", "hen", "missile"]) == ["jay", "missile", "hen", "missile (2)"]


def test_the_file_of_the_package_becomes_a_classifier_to_use_and_to_begin_from(tmp_path: Path) -> None:
    model = create("efficientnet-lite0", classes=1000)
    names = lite_package(model.config)
    public = {}
    for ours, tensor in model.state_dict().items():
        module, _, leaf = ours.rpartition(".")
        public[f"{names[module]}.{leaf}"] = tensor
    content = io.BytesIO()
    torch.save(public, content, _use_new_zipfile_serialization=False)
    state = efficientnet.read_weights(content.getvalue())
    assert state.keys() == model.state_dict().keys()
    efficientnet.save(tmp_path / "lite", state, [f"kind {number}" for number in range(1000)])

    PIL.Image.new("RGB", (50, 30), "red").save(tmp_path / "red.png")
    decision = foveate.load(tmp_path / "lite").run(tmp_path / "red.png")
    assert decision.label.startswith("kind ")
    assert open_start(tmp_path / "lite").preset == "efficientnet-lite0"


def test_nothing_but_tensors_is_read() -> None:
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        efficientnet.read_weights(pickle.dumps(Path("x"), protocol=2))
