"""Figures, self-contained pages and a local server that show where a model looks."""

from foveate.viewer.figures import Alignment, alignment, alignments, save

__all__ = ["Alignment", "alignment", "alignments", "save"]
