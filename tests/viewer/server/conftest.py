"""Servers of a small model, as they are served, in threads."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from served_model import Client, FakeViewer, Serve

from foveate.viewer.protocol import InputKind
from foveate.viewer.server import Address, Limits, make_application
from foveate.viewer.server.serving import listen, make_server
from foveate.viewer.server.worker import Worker


@pytest.fixture
def served() -> Iterator[Serve]:
    """`served(takes, host=..., second=..., **limits)`: a client of a new server."""
    servers, threads = [], []

    def begin(
        takes: InputKind = "text", host: str = "127.0.0.1", second: FakeViewer | None = None, **limits: int
    ) -> Client:
        viewer, listener = FakeViewer(takes), listen(Address("127.0.0.1"))
        port = listener.getsockname()[1]
        settled = Limits(**limits)
        running = make_server(make_application(viewer, settled, Worker(settled.waiting), second), host, port)
        thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
        thread.start()
        servers.append(running)
        threads.append(thread)
        return Client(viewer, host, port)

    yield begin
    for each in servers:
        each.should_exit = True
    for thread in threads:
        thread.join(10)
