"""foveate: build, train and run attention models, and see where they look."""

import gc

from foveate.threads import choose_waiting

choose_waiting()  # it only has an effect before torch is imported, hence the order here

# Nothing that is imported becomes garbage: looking for some takes a tenth of a second, and a fifth once it is over.
_collects = gc.isenabled()
gc.disable()

from foveate import attention
from foveate.errors import UserError
from foveate.models import create
from foveate.sight import look, rendering
from foveate.tasks import load, train
from foveate.viewer import sight_renderer

rendering.register(sight_renderer)  # `sight` cannot import it: `viewer` stands above

gc.freeze()  # with the next line: all there is counts as old, and the next new object has nothing looked through
gc.unfreeze()
if _collects:
    gc.enable()

__all__ = ["UserError", "attention", "create", "load", "look", "train"]
