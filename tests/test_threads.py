"""Threads spin long where there are cores to spare, and shortly where another program wants one."""

import os
from pathlib import Path

import pytest

from foveate import threads


def chosen(monkeypatch: pytest.MonkeyPatch, running: Path, **environment: str) -> str:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(threads, "RUNNING", running)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    threads.choose_waiting()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    return os.environ["GOMP_SPINCOUNT"]


@pytest.mark.parametrize(
    ("wanting", "own", "expected"),
    [
        (1, {}, threads.LONG),
        (2, {}, threads.SHORT),
        (2, {"OMP_NUM_THREADS": "3"}, threads.LONG),
        (3, {"OMP_NUM_THREADS": "3"}, threads.SHORT),
        (1, {"OMP_NUM_THREADS": "2,2"}, threads.SHORT),
    ],
)
def test_others_that_want_a_core(
    wanting: int, own: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loadavg").write_text(f"2.01 0.31 0.18 {wanting}/80 4711\n")
    assert chosen(monkeypatch, tmp_path / "loadavg", **own) == str(expected)


@pytest.mark.parametrize(("verb", "expected"), [("train", threads.SHORT), ("run", threads.LONG)])
def test_a_training_gives_way_to_who_comes_later(
    verb: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/foveate", verb, "translate"])
    (tmp_path / "loadavg").write_text("2.01 0.31 0.18 1/80 4711\n")
    assert chosen(monkeypatch, tmp_path / "loadavg") == str(expected)


def test_where_nobody_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, tmp_path / "loadavg") == str(threads.SHORT)


def test_what_a_user_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, tmp_path / "loadavg", GOMP_SPINCOUNT="7") == "7"
