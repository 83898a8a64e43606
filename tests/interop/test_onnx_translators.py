"""Translators in onnxruntime: written token by token, the same texts as here."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

onnxruntime = pytest.importorskip("onnxruntime")

from small_translators import SIZES, TEXTS, trained  # noqa: E402
from translators import TRANSLATORS  # noqa: E402

import foveate  # noqa: E402
from foveate.cli import main  # noqa: E402


def export(model: Path, out: Path) -> None:
    """In a process of its own: the tests' checks of types refuse the symbols that stand for sizes."""
    command = [sys.executable, "-m", "foveate", "export", str(model), "--out", str(out), "--to", "onnx"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "logits differ from PyTorch's by at most" in done.stdout, done.stderr


def greedy(out: Path, source: list[int], most: int) -> list[int]:
    """What onnxruntime writes for a source, token by token."""
    about = json.loads((out / "onnx.json").read_text())
    encoder, decoder = (onnxruntime.InferenceSession(out / f"{part}_model.onnx") for part in ("encoder", "decoder"))
    ids, mask = np.array([source]), np.ones((1, len(source)), np.int64)
    (encoded,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
    tokens = [about["decoder_start_token_id"]]
    for _ in range(most):
        given = {"input_ids": np.array([tokens]), "encoder_hidden_states": encoded, "encoder_attention_mask": mask}
        (logits,) = decoder.run(None, given)
        logits[0, -1, about["never_written"]] = -np.inf
        tokens.append(int(logits[0, -1].argmax()))
        if tokens[-1] == about["eos_token_id"]:
            break
    return [token for token in tokens[1:] if token != about["eos_token_id"]]


def test_the_likeliest_text_is_the_same(tmp_path: Path) -> None:
    run, out = trained(tmp_path, **SIZES), tmp_path / "out"
    export(run, out)
    skill = foveate.load(run)
    for text in TEXTS:
        answer = skill.run(text, method="greedy", max_new_tokens=9)
        assert greedy(out, skill.processor.reads.prepare(text).tolist(), 9) == answer.tokens
        assert answer.tokens


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_folders_of_others(kind: str, tmp_path: Path) -> None:
    """With learned positions and relative ones; each file is compared when it is written."""
    TRANSLATORS[kind].write(tmp_path / "folder")
    export(tmp_path / "folder", tmp_path / "out")
    assert (tmp_path / "out" / "decoder_model.onnx").is_file()


def test_what_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path, "rnn", width=22, embedding=10)
    with pytest.raises(SystemExit):
        main(["export", str(run), "--out", str(tmp_path / "out"), "--to", "onnx"])
    assert "is not written as ONNX: of translators, transformer and t5 are" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
