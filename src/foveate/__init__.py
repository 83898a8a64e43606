"""foveate: build, train and run attention models, and see where they look."""

import gc
import os

# Threads that wait for work shall sleep, not spin: where another program wants a core too, spinning made training two
# to ten times slower. They look for work some microseconds long before they sleep, because going to sleep and waking up
# takes longer than most of what they wait for. It only has an effect before torch is imported, hence the order here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

# Nothing that is imported becomes garbage: looking for some takes a tenth of a second.
_collects = gc.isenabled()
gc.disable()

from foveate import attention
from foveate.errors import UserError
from foveate.models import create
from foveate.recipes import load, train
from foveate.sight import look

if _collects:
    gc.enable()

__all__ = ["UserError", "attention", "create", "load", "look", "train"]
