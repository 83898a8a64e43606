"""Lets the tests of this folder import `pretended`, the variants of all models, and the trainings of all tasks. A real
device computes in single precision as the CPU does, also where it has a faster kind of its own."""

import os
import sys
from pathlib import Path

import torch

TESTS = Path(__file__).parents[1]

sys.path[:0] = [str(TESTS / folder) for folder in ("device", "models", "tasks")]

if os.environ.get("FOVEATE_TEST_DEVICE"):
    torch.backends.fp32_precision = "ieee"
