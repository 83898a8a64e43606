"""Lets the tests of this folder import `words`, which the tests of tasks have."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tasks"))
