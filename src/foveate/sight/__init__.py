"""Records what a model attends to while it runs, and measures it afterwards."""

from foveate.sight.layouts import Grid, Windows
from foveate.sight.look import look
from foveate.sight.sight import Sight
from foveate.sight.site import Site

__all__ = ["Grid", "Sight", "Site", "Windows", "look"]
