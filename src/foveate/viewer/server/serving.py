"""Runs the explorer's server."""

import asyncio
import math
import socket
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from foveate.errors import UserError
from foveate.viewer.protocol import ModelViewer
from foveate.viewer.server.application import Limits, make_application
from foveate.viewer.server.guards import WILDCARDS, Guard, allowed_hosts, named_hosts
from foveate.viewer.server.requests import UPLOAD_SECONDS
from foveate.viewer.server.worker import Worker

MAX_CONNECTIONS = 512

PATIENCE = {"head": 10.0, "body": UPLOAD_SECONDS + 5.0, "answer": 60.0}
"""Seconds that a client may take for the head of a request, the body, and to read the answer."""

WATCH_SECONDS = 0.5
"""Seconds between two looks at what a connection waits for."""


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
        url = url_of(address.host, port)
        report(url)
        if browser:
            webbrowser.open(url)
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the server
            make_server(make_application(viewer, limits, worker, second), address.host, port).run([listener])
    return worker.busy


def url_of(host: str, port: int) -> str:
    """The address at which a browser on this machine finds a server."""
    host = "localhost" if host in WILDCARDS else host
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def make_server(app: ASGIApp, host: str, port: int, names: Sequence[str] = (), grace: int = 1) -> uvicorn.Server:
    """The server of an application at a host and a port, behind a guard, which clients may also call by other `names`.

    When it is to end, the requests that it has may take `grace` more seconds.
    """
    hosts = allowed_hosts(host, port, socket.gethostname()).union(*(named_hosts(name, port) for name in names))
    return uvicorn.Server(
        uvicorn.Config(
            Guard(app, hosts, port, host in WILDCARDS),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=PunctualProtocol,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=grace,
        )
    )


class PunctualProtocol(H11Protocol):
    """Sends answers at once, and closes a connection whose client is too slow with a part of any request, which would
    keep others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio does so for sockets that name their protocol. Else the body waits 40 ms behind the head of an answer.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._part: tuple[object, str] = (None, "")
        self._since = self.loop.time()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._watching.cancel()

    def _watch(self) -> None:
        part = self.cycle, self._waits_for()
        if part != self._part:
            self._part, self._since = part, self.loop.time()
        if self.loop.time() - self._since > PATIENCE.get(part[1], math.inf):
            self.transport.abort()
        self._watching = self.loop.call_later(WATCH_SECONDS, self._watch)

    def _waits_for(self) -> str:
        """What the client has to do next: send a "head" or a "body", or read an "answer"; empty if nothing."""
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if answering or self.transport.is_closing() or self.transport.get_write_buffer_size():
            return "answer"
        return {h11.IDLE: "head", h11.SEND_BODY: "body"}.get(self.conn.their_state, "")


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
