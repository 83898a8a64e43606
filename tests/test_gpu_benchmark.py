"""Every part of the benchmarks of accelerators runs, in small, on the CPU."""

import argparse
import json
import math
import sys
from pathlib import Path

import pytest
import references
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import gpu
import utilisation

ELSEWHERE = {"tests", "train gpt2, compiled", "train vit-base, compiled", "flex attention"}
"""Parts that are tests themselves, or that need a compiler and take minutes."""

assert references


@pytest.mark.parametrize("part", [*filter(lambda part: part not in ELSEWHERE, gpu.PARTS)])
def test_part(part: str) -> None:
    for peer in ("timm", "attnread"):
        pytest.importorskip(peer) if peer in part else None
    row = gpu.PARTS[part](torch.device("cpu"), True)
    assert row
    assert all(math.isfinite(value) and value > 0 for value in row.values())
    assert part in gpu.line({"part": part, "seconds": 1.0, **row})


def test_a_part_that_fails_or_takes_long_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = argparse.Namespace(device="cuda:77", tiny=True, limit=100.0, minutes=10.0)
    assert "cuda:77" in gpu.measured("generate", asked, 600.0)["error"]
    asked.limit = 0.01
    assert gpu.measured("generate", asked, 600.0)["error"] == "took more than 0.01 seconds"
    asked.limit = 100.0
    assert gpu.measured("generate", asked, 0.02)["error"] == "took more than 0.02 seconds"
    assert gpu.measured("generate", asked, -1.0)["error"] == "not begun, as 10 minutes were over"


def test_rows_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu, "measured", lambda part, asked, left: {"error": "none", "seconds": 1.0})
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--device", "cpu", "--tiny", "--out", str(tmp_path / "rows.json")])
    gpu.main()
    assert [row["part"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]] == [*gpu.PARTS]


def test_models_of_full_size_are_there() -> None:
    with torch.device("meta"):
        sizes = [sum(part.numel() for part in make(False).parameters()) for make in (gpu.gpt, gpu.vit)]
    assert sizes == [124_439_808, 86_567_656]


@pytest.mark.parametrize("model", ["gpt-tiny --length 16 --vocabulary 97", "transformer-tiny --tokens 64"])
def test_utilisation(model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--device", "cpu", "--warm", "1", "--steps", "1", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["utilisation.py", "--model", *model.split(), *options])
    monkeypatch.setattr(utilisation, "SIZES", (64,))
    utilisation.main()
    assert "model FLOPs utilisation" in capsys.readouterr().out
