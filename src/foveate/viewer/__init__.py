"""Figures, self-contained pages and a local server that show where a model looks."""

from foveate.viewer.figures import Alignment, plot_alignment, plot_alignments, save_figure
from foveate.viewer.sides import Audio, Image

__all__ = ["Alignment", "Audio", "Image", "plot_alignment", "plot_alignments", "save_figure"]
