"""Damaged input, a few tries of `make fuzz`."""

from fuzzing import SUBJECTS, fuzz


def test_damaged_input_is_told_in_one_line() -> None:
    assert fuzz(60 * len(SUBJECTS), seed=1) == []
