"""Lets the tests of this folder and below import `catalogue_maker`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
