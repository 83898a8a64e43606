"""Seeing where a model looks: what it attended to, and pictures of it."""

from foveate.sight.figures import alignment, alignments
from foveate.sight.look import Sight, Site, look

__all__ = ["Sight", "Site", "alignment", "alignments", "look"]
