"""Lets the tests of this folder import `pretended`, the variants of all models, and the trainings of all tasks."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

sys.path[:0] = [str(TESTS / folder) for folder in ("device", "models", "tasks")]
