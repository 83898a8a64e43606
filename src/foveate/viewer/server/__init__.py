"""A local server with the page of `foveate.viewer.page`: type an input, see where the model looks, zoom in.

`application` is the server as an ASGI application, `serve` runs it. What is shown is computed when it is asked for, a
bounded number of weights for each request.
"""

from foveate.viewer.server.application import Limits, application
from foveate.viewer.server.serving import Place, serve

__all__ = ["Limits", "Place", "application", "serve"]
