"""A skill that is served in a thread, and a client of it."""

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from foveate.serving import Service, ServiceLimits, make_application
from foveate.viewer.server.serving import Address, listen, make_server

LIMITS = ServiceLimits()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks a service."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent = {"content-type": "application/json", **sent}
        try:
            connection.request(method, path, data, sent)
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def answer(self, **body: Any) -> Answer:
        return self("POST", "/answer", body)


@contextmanager
def served(skill: Any, options: Any = None, limits: ServiceLimits = LIMITS) -> Iterator[Client]:
    """A client of a skill, which is served for the block."""
    application = make_application(Service(skill, options or skill.options_with(), limits))
    with listen(Address()) as listener:
        port = listener.getsockname()[1]
        server = make_server(application, "127.0.0.1", port)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield Client(port)
        finally:
            server.should_exit = True
            thread.join(10)


def as_input(argument: str, takes: str) -> Any:
    """An argument of `foveate run` as the input of a request."""
    if takes == "text":
        return argument
    path, _, question = argument.partition("\t")
    values = {"data": base64.b64encode(Path(path).read_bytes()).decode(), "name": Path(path).name}
    return {**values, "question": question} if takes == "question" else values
