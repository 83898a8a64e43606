"""A small model to look at, and a client that sends a server what one tells it to."""

import http.client
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from foveate.attention import causal
from foveate.errors import UserError
from foveate.nn import MultiHeadAttention
from foveate.sight.measured_look import measured_look
from foveate.viewer.protocol import Input, InputKind, LookResult

HEADS = 3


class Layers(nn.Module):
    """Two layers of causal attention that look at some places more than at others."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(9, HEADS) for _ in range(2))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask=causal())
        return x


class FakeViewer:
    """Reads words; `before` is called in the thread that looks, for tests of what happens meanwhile."""

    name = "Layers from <nowhere> & </script>"
    max_length = 1500
    examples = ("one two </script>", "three")

    def __init__(self, takes: InputKind = "text", seed: int = 3) -> None:
        torch.manual_seed(seed)
        self.model, self.takes = Layers(), takes
        self.before: Callable[[Input], None] = lambda given: None
        self.seen: dict[str, LookResult] = {}

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None, measure: str = "weights") -> LookResult:
        self.before(given)
        words = given.split() if isinstance(given, str) else [given.name, *map(str, given.data)]
        if len(words) > most:
            raise UserError(f"the text has {len(words)} tokens, but at most {most} are looked at")
        random = torch.Generator().manual_seed(len(words))
        x = torch.randn(1, len(words), 9, generator=random)
        sight, _ = measured_look(self.model, lambda: self.model(x), measure, sites)
        name = given if isinstance(given, str) else given.name
        self.seen[name] = LookResult(sight, dict.fromkeys(sight.sites, words), name[:100], [self.name])
        return self.seen[name]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks a server for things, with the headers of its own page or others."""

    def __init__(self, viewer: FakeViewer, host: str, port: int) -> None:
        self.viewer, self.host, self.port = viewer, host, port
        self.cookie = ""

    def browser(self) -> "Client":
        """A client with a cookie of its own."""
        found = Client(self.viewer, self.host, self.port)
        found.cookie = found.get("/").headers["set-cookie"].partition(";")[0]
        return found

    def __call__(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            headers = {"content-type": "application/json", **(headers or {})}
        if self.cookie:
            headers = {"cookie": self.cookie, **(headers or {})}
        try:
            connection.request(method, path, data, headers or {})
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def look(self, text: str) -> str:
        """The address of what was seen of a text."""
        begun = self("POST", "/looks", {"text": text})
        assert begun.status == 202
        address = f"/looks/{begun.json['id']}"
        self.wait(address)
        return address

    def wait(self, address: str) -> Answer:
        while (answer := self.get(address)).status == 202:
            pass
        return answer


Serve = Callable[..., Client]
