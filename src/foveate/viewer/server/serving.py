"""Runs the explorer's server."""

import asyncio
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from foveate.errors import UserError
from foveate.viewer.protocol import ModelViewer
from foveate.viewer.server.application import Limits, make_application
from foveate.viewer.server.guards import WILDCARDS, Guard, allowed_hosts
from foveate.viewer.server.worker import Worker

MAX_CONNECTIONS = 64

SILENT_SECONDS = 5.0
"""After so long a connection without a request is closed."""


@dataclass(frozen=True)
class Address:
    """The address at which a server listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 chooses a free port."""


def serve(
    viewer: ModelViewer,
    address: Address,
    limits: Limits,
    report: Callable[[str], None] = print,
    browser: bool = False,
    second: ModelViewer | None = None,
) -> bool:
    """Serve a model's page until Ctrl-C, with a second model's heads beside its own if one is given. `report` is called
    with the URL; `browser` opens it.

    Returns whether the model still runs, in a thread that cannot be stopped. Raises UserError if the address is not
    available.
    """
    worker = Worker(limits.waiting)
    with listen(address) as listener:
        port = listener.getsockname()[1]
        host = "localhost" if address.host in WILDCARDS else address.host
        url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
        report(url)
        if browser:
            webbrowser.open(url)
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the server
            make_server(make_application(viewer, limits, worker, second), address.host, port).run([listener])
    return worker.busy


def make_server(app: ASGIApp, host: str, port: int) -> uvicorn.Server:
    """The server of an application at a host and a port, behind a guard."""
    return uvicorn.Server(
        uvicorn.Config(
            Guard(app, allowed_hosts(host, port, socket.gethostname()), port, host in WILDCARDS),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=ImpatientProtocol,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
    )


class ImpatientProtocol(H11Protocol):
    """Closes connections that send no request, which would keep others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(SILENT_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def listen(address: Address) -> socket.socket:
    """A listening socket. Raises UserError if the address is not available."""
    if not 0 <= address.port < 2**16:
        raise UserError(f"port is {address.port}, but must be from 0 to {2**16 - 1}")
    try:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # the rest repeats the address
        raise UserError(f"cannot listen at {address.host}, port {address.port}: {reason}") from None
