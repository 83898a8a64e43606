"""Damaged input and requests, a few tries of `make fuzz`."""

import pytest
from fuzzing import SUBJECTS, fuzz

OF_OTHERS = {"public-run", "public-look", "foreign"}
"""Subjects that need transformers, and take longer."""

FEW = {"metrics": 12, "explorer": 24, "checkpoint": 24}
"""How often subjects are tried that take longer, as each draws pictures or looks at inputs."""


@pytest.mark.parametrize("subject", sorted(SUBJECTS.keys() - OF_OTHERS))
def test_damaged_input_is_told_in_one_line(subject: str) -> None:
    assert fuzz(FEW.get(subject, 60), seed=1, only=subject) == []
