"""A local server with the page of `foveate.sight.page`: type an input, see where the model looks, zoom in.

`application` is the server as an ASGI application, `serve` runs it. What is shown is computed when it is asked for, a
bounded number of weights for each request.
"""

from foveate.sight.explorer.application import Limits, application
from foveate.sight.explorer.serving import Place, serve

__all__ = ["Limits", "Place", "application", "serve"]
