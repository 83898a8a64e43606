"""A self-contained HTML page that shows where a model looks, in any browser and without a network."""

from foveate.viewer.page.compose import read, save, to_html, to_iframe

__all__ = ["read", "save", "to_html", "to_iframe"]
