"""Seeing where a model looks: what it attended to, and pictures of it."""

from foveate.sight.figures import Alignment, alignment, alignments, save
from foveate.sight.look import Sight, Site, look

__all__ = ["Alignment", "Sight", "Site", "alignment", "alignments", "look", "save"]
