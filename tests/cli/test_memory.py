"""Freed memory stays with the process, where the C library can be told so."""

import ctypes

import pytest

from foveate.cli.memory import keep_freed_memory


def test_the_c_library_is_told_both_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, parameter: int, value: int) -> int:
            told.append((parameter, value))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    keep_freed_memory()
    assert told == [(-1, 2**30), (-3, 2**30)]


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    keep_freed_memory()
