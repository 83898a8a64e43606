"""Running the explorer: where it listens, under which names, and until when."""

import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from foveate.errors import UserError
from foveate.viewer.protocol import Viewer
from foveate.viewer.server.application import Limits, application
from foveate.viewer.server.guards import WILDCARDS, Guard, names
from foveate.viewer.server.worker import Worker

CONNECTIONS = 64


@dataclass(frozen=True)
class Place:
    """Where a server listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""


def serve(
    viewer: Viewer, place: Place, limits: Limits, say: Callable[[str], None] = print, browser: bool = False
) -> bool:
    """Serve a model's page until Ctrl-C. `say` is told the address; `browser` opens it.

    Gives whether the model still runs, in a thread that nothing can stop. Raises UserError where the place cannot be
    had.
    """
    worker = Worker(limits.waiting)
    with bound(place) as listener:
        port = listener.getsockname()[1]
        shown = "localhost" if place.host in WILDCARDS else place.host
        address = f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
        say(address)
        if browser:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):  # the way to end it
            server(application(viewer, limits, worker), place.host, port).run([listener])
    return worker.busy


def server(app: ASGIApp, host: str, port: int) -> uvicorn.Server:
    """The server of an application at a host and a port, with its guard before it."""
    return uvicorn.Server(
        uvicorn.Config(
            Guard(app, names(host, port, socket.gethostname()), port, host in WILDCARDS),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
    )


def bound(place: Place) -> socket.socket:
    """A socket that listens. Raises UserError where the place cannot be had."""
    if not 0 <= place.port < 2**16:
        raise UserError(f"port is {place.port}, but must be from 0 to {2**16 - 1}")
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # what follows is the place once more
        raise UserError(f"cannot listen at {place.host}, port {place.port}: {reason}") from None
