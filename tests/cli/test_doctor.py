"""What `foveate doctor` tells."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from foveate.cli import doctor, main


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Any:
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(doctor, "SIZE", 64)

    def tell() -> str:
        main(["doctor"])
        return capsys.readouterr().out

    return tell


def test_versions_and_the_machine(told: Any) -> None:
    text = told()
    assert torch.__version__ in text
    assert "GFLOP/s in float32" in text


def test_an_extra_that_is_absent(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "soundfile" else there(name))
    assert "absent: ogg, flac and mp3 need pip install 'foveate[audio]'" in told()


def test_what_makes_it_slow(told: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "other_running_threads", lambda: 3)
    monkeypatch.setattr(doctor, "_cores", lambda: 1000)
    (tmp_path / "file").touch()
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "file"))
    text = told()
    assert "3 threads of other programs want a core now" in text
    assert "of 1000 cores: see OMP_NUM_THREADS" in text
    assert "data by name cannot be kept: cannot write in" in text


def test_a_machine_without_a_fault(told: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "other_running_threads", lambda: 0)
    monkeypatch.setattr(doctor, "_cores", torch.get_num_threads)
    monkeypatch.setattr(doctor, "cpu_has", lambda *names: True)
    monkeypatch.setattr(doctor, "bfloat16_is_fast", lambda: True)
    monkeypatch.setattr(doctor, "_available_memory", lambda: 2**35)
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    assert "Nothing here makes foveate slow." in told()
