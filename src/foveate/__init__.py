"""foveate: build, train and run attention models, and see where they look."""

from foveate import attention
from foveate.contracts import UserError
from foveate.models import create
from foveate.recipes import load, train
from foveate.sight import look

__all__ = ["UserError", "attention", "create", "load", "look", "train"]
