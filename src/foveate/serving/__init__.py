"""A model that answers over HTTP: `foveate serve RUN`.

`Service` gathers the inputs of many clients into batches for one skill. `make_application` is its ASGI application.
"""

from foveate.serving.application import make_application
from foveate.serving.service import Service, ServiceLimits

__all__ = ["Service", "ServiceLimits", "make_application"]
