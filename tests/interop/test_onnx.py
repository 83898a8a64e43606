"""ONNX files give the logits of PyTorch, for any number of rows and tokens."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from foveate import models
from foveate.cli import main
from foveate.data.tokens.tokenizers import TRAINERS
from foveate.errors import UserError
from foveate.forms.processor import Processor
from foveate.forms.text_vector import PairedText, TextVector
from foveate.interop import onnx as interop
from foveate.interop.public_folder import PublicModel
from foveate.tasks.embedder import Embedder
from foveate.tasks.export import onnx as onnx_export
from foveate.tasks.hf.texts import skill_of

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

SIZES = {"vocabulary": 29, "width": 16, "heads": 4, "layers": 1, "feedforward": 20, "max_length": 37}

# In a process of its own: the tests' checks of types refuse the symbols that stand for sizes.
EXPORT = f"""
import sys, torch
from pathlib import Path
from foveate import attention, models
from foveate.interop.onnx import Sample, export_onnx
import importlib

torch.manual_seed(0)
rows = [torch.randint(4, 29, size) for size in ((3, 31), (1, 1))]
for name, more in (("smollm2-135m", {{"key_value_heads": 2}}), ("bert-mini", {{"head": "vector", "pooling": "mean"}})):
    model = models.create(name, **{SIZES} | more).eval()
    given = [{{"tokens": row}} for row in rows]
    if "head" in more:
        given = [one | {{"lengths": torch.tensor([31, 2, 7, 1])[: len(one["tokens"])]}} for one in given]
    sample = Sample(given[0], {{"tokens": {{0: "batch", 1: "length"}}, "lengths": {{0: "batch"}}}})
    worst = export_onnx(model, sample, [], Path(sys.argv[1]) / f"{{name}}.onnx")
    assert worst < 1e-5, worst
assert importlib.import_module("foveate.nn.attention").attend is attention.attend
"""


def tokens(rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, 29, (rows, length))


def test_other_sizes_than_those_of_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-c", EXPORT, str(tmp_path)], check=True)
    given = tokens(2, 37)
    for name, more, inputs in (
        ("smollm2-135m", {"key_value_heads": 2}, {"tokens": given}),
        ("bert-mini", {"head": "vector", "pooling": "mean"}, {"tokens": given, "lengths": torch.tensor([5, 37])}),
    ):
        torch.manual_seed(0)
        [torch.randint(4, 29, size) for size in ((3, 31), (1, 1))]
        if name == "bert-mini":
            models.create("smollm2-135m", key_value_heads=2, **SIZES)
        model = interop.TensorsOnly(models.create(name, **SIZES | more), [*inputs])
        path = tmp_path / f"{name}.onnx"
        (found,) = runtime.InferenceSession(str(path)).run(None, {key: value.numpy() for key, value in inputs.items()})
        with torch.no_grad():
            np.testing.assert_allclose(found, model(*inputs.values())[0].numpy(), atol=1e-5)
    monkeypatch.setattr(interop, "TOLERANCE", -1.0)
    with pytest.raises(UserError, match=r"onnxruntime's outputs of .* differ from PyTorch's by"):
        interop._check(runtime, model, [inputs], path)


def test_other_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only language models, translators, BERTs with one text, and classifiers"):
        onnx_export.export_to_onnx(type("Task", (), {"model": torch.nn.Linear(2, 2)})(), tmp_path / "out")


def test_the_command_tells_the_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    model = models.create("bert-mini", head="vector", **SIZES).eval()
    processor = Processor(PairedText(tokenizer=TRAINERS["subwords"](["red cat"], 29, False)), TextVector())
    skill = skill_of(Embedder, "embed", PublicModel("bert", model, {}), tmp_path, processor)
    monkeypatch.setattr(onnx_export, "export_onnx", lambda *given: 0.00001)
    monkeypatch.setattr("foveate.tasks.load", lambda folder: skill, raising=False)
    main(["export", str(tmp_path), "--to", "onnx", "--out", str(tmp_path / "out")])
    assert "differ from PyTorch's by at most 1.0e-05" in capsys.readouterr().out
    about = json.loads((tmp_path / "out/onnx.json").read_text())
    assert about["inputs"] == {"tokens": ["batch", "length"], "lengths": ["batch"]}
