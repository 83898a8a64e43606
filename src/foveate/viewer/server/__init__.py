"""A local server with the page of `foveate.viewer.page`: type an input, see where the model looks, zoom in.

`make_application` makes an ASGI application, `serve` runs it. Everything that is shown is computed on request, with a
bounded number of weights for each.
"""

from foveate.viewer.server.application import Limits, make_application
from foveate.viewer.server.serving import Address, serve

__all__ = ["Address", "Limits", "make_application", "serve"]
