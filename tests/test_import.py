"""What `import foveate` costs beside the imports."""

import re
import subprocess
import sys

import foveate

PROGRAM = """
import gc
looked_through = [0]
gc.callbacks.append(lambda phase, _: phase == "start" and looked_through.append(len(gc.get_objects(generation=0))))
import foveate
foveate.create
new = [[] for _ in range(2000)]
print(max(looked_through) < 10_000, gc.isenabled(), gc.get_freeze_count())
"""


def test_what_was_imported_is_not_looked_through_for_garbage() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert told == "True True 0\n", "new objects alone are, and nothing is exempt for good"


def test_what_the_package_offers() -> None:
    assert dir(foveate) == sorted(foveate.__all__)
    assert all(getattr(foveate, name) is not None for name in foveate.__all__)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", foveate.__version__)
    assert foveate.nn.MultiHeadAttention.__name__ == "MultiHeadAttention"
