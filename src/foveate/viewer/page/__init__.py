"""A self-contained page that shows where a model looks, for any browser, without a network.

`document(sight, ...)` measures what the page shows; `save`, `html` and `frame` make the page, and `read` reads it back.
"""

from foveate.viewer.document import Document, Panel, Rows, document
from foveate.viewer.page.compose import compose, frame, html, read, save
from foveate.viewer.sides import Audio, Image, Side

__all__ = [
    "Audio",
    "Document",
    "Image",
    "Panel",
    "Rows",
    "Side",
    "compose",
    "document",
    "frame",
    "html",
    "read",
    "save",
]
