"""foveate: build, train and run attention models, and see where they look."""

from foveate.startup import end_at_once_on_interrupt

end_at_once_on_interrupt()  # before anything that takes time is imported

from typing import TYPE_CHECKING, Any

from foveate.errors import UserError
from foveate.lazy import import_late
from foveate.threads import choose_waiting

if TYPE_CHECKING:
    from foveate import attention as attention
    from foveate import nn as nn
    from foveate.models import create as create
    from foveate.sight import change as change
    from foveate.sight import look as look
    from foveate.sight import show as show
    from foveate.tasks import load as load
    from foveate.tasks import train as train
    from foveate.tasks.loading import recipe as recipe

choose_waiting()  # it only has an effect before torch is imported, which the names below do

_find = import_late(
    __name__,
    {
        "change": "foveate.sight",
        "create": "foveate.models",
        "load": "foveate.tasks",
        "look": "foveate.sight",
        "recipe": "foveate.tasks.loading",
        "show": "foveate.sight",
        "train": "foveate.tasks",
        **dict.fromkeys(("attention", "data", "decoding", "models", "nn", "sight", "tasks", "training", "viewer"), ""),
    },
)

__all__ = ["UserError", "__version__", "attention", "change", "create", "load", "look", "nn", "recipe", "show", "train"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata  # slow to import

        return metadata.version("foveate")
    return _find(name)


def __dir__() -> list[str]:
    return __all__
