"""Lets the tests of this folder import `tiny_training`, which is a program too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
