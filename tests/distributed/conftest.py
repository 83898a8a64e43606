"""Lets these tests import `two_processes`, which is a program too, and what the tests of the command line share."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli"), str(HERE.parent / "tasks")]
