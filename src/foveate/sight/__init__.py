"""Seeing where a model looks: what it attended to, and pictures of it."""

from foveate.sight.layouts import Grid, Windows
from foveate.sight.look import look
from foveate.sight.pictures import Alignment, alignment, alignments, save
from foveate.sight.sight import Sight
from foveate.sight.site import Site

__all__ = ["Alignment", "Grid", "Sight", "Site", "Windows", "alignment", "alignments", "look", "save"]
