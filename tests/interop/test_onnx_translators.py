"""Translators in onnxruntime: written token by token, the same texts as here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

onnxruntime = pytest.importorskip("onnxruntime")
transformers = pytest.importorskip("transformers")

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
    """What onnxruntime writes for a source: the first token by the decoder, each other one by that with a past, as
    optimum runs them."""
    about = json.loads((out / "onnx.json").read_text())
    names = ("encoder_model", "decoder_model", "decoder_with_past_model")
    encoder, decoder, later = (onnxruntime.InferenceSession(out / f"{name}.onnx") for name in names)
    ids, mask = np.array([source]), np.ones((1, len(source)), np.int64)
    (encoded,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
    tokens, past = [about["decoder_start_token_id"]], dict[str, np.ndarray]()
    for _ in range(most):
        given = {"input_ids": np.array([tokens[-1:]]), "encoder_attention_mask": mask}
        session, more = (later, past) if past else (decoder, {"encoder_hidden_states": encoded})
        found = dict(zip([one.name for one in session.get_outputs()], session.run(None, given | more), strict=True))
        logits = found.pop("logits")
        past |= {f"past_key_values{name.removeprefix('present')}": value for name, value in found.items()}
        logits[0, -1, about["never_written"]] = -np.inf
        tokens.append(int(logits[0, -1].argmax()))
        if tokens[-1] == about["eos_token_id"]:
            break
    return [token for token in tokens[1:] if token != about["eos_token_id"]]


def read_by_transformers(out: Path, texts: list[str], rows: list[list[int]], kind: str) -> None:
    """The settings and the tokenizer beside the files."""
    config = transformers.AutoConfig.from_pretrained(out)
    assert (config.model_type, config.is_encoder_decoder) == (kind, True)
    special = json.loads((out / "onnx.json").read_text())
    generation = transformers.GenerationConfig.from_pretrained(out)
    for name in ("decoder_start_token_id", "eos_token_id"):
        assert getattr(generation, name) == special[name]
    assert transformers.AutoTokenizer.from_pretrained(out)(texts)["input_ids"] == rows


@pytest.mark.parametrize("shape", [{}, {"positions": "relative", "window": 2}], ids=str)
def test_the_likeliest_text_is_the_same(shape: dict[str, Any], tmp_path: Path) -> None:
    """Of sines, whose settings transformers reads, and of relative positions and windows, which it lacks."""
    run, out = trained(tmp_path, **SIZES, **shape), tmp_path / "out"
    export(run, out)
    skill = foveate.load(run)
    rows = [skill.processor.reads.prepare(text).tolist() for text in TEXTS]
    for text, row in zip(TEXTS, rows, strict=True):
        answer = skill.run(text, method="greedy", max_new_tokens=9)
        assert greedy(out, row, 9) == answer.tokens
        assert answer.tokens
    if shape:
        assert not (out / "config.json").exists()
    else:
        read_by_transformers(out, [*TEXTS], rows, "pegasus")


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_folders_of_others(kind: str, tmp_path: Path) -> None:
    """With learned positions and relative ones; each file is compared when it is written."""
    TRANSLATORS[kind].write(tmp_path / "folder")
    export(tmp_path / "folder", tmp_path / "out")
    skill = foveate.load(tmp_path / "folder")
    source, special = skill.processor.reads.prepare(TEXTS[0]), skill.processor.writes.tokenizer.special
    with torch.no_grad():
        state, own = skill.model.start(torch.tensor(source)[None], torch.tensor([len(source)])), [special.start]
        while len(own) < 8 and special.end not in own[1:]:
            logits = skill.model.step(torch.tensor(own[-1:]), state)[0]
            own.append(int(logits.index_fill(0, torch.tensor(special.never_written), -torch.inf).argmax()))
    assert greedy(tmp_path / "out", source.tolist(), 7) == [token for token in own[1:] if token != special.end]
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").model_type == kind


def test_what_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path, "rnn", width=22, embedding=10)
    with pytest.raises(SystemExit):
        main(["export", str(run), "--out", str(tmp_path / "out"), "--to", "onnx"])
    assert "is not written as ONNX: of translators, transformer and t5 are" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
