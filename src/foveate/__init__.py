"""foveate: build, train and run attention models, and see where they look."""

from typing import TYPE_CHECKING

from foveate.errors import UserError
from foveate.lazy import import_late
from foveate.threads import choose_waiting

if TYPE_CHECKING:
    from foveate import attention as attention
    from foveate.models import create as create
    from foveate.sight import look as look
    from foveate.tasks import load as load
    from foveate.tasks import train as train

choose_waiting()  # it only has an effect before torch is imported, which the names below do

__getattr__ = import_late(
    __name__,
    {
        "create": "foveate.models",
        "load": "foveate.tasks",
        "look": "foveate.sight",
        "train": "foveate.tasks",
        **dict.fromkeys(("attention", "data", "decoding", "models", "nn", "sight", "tasks", "training", "viewer"), ""),
    },
)

__all__ = ["UserError", "attention", "create", "load", "look", "train"]
