"""Restricts who may send requests to the server: only pages that it served itself, under its own host names.

A page of another origin that is open in the browser must neither read results nor run the model, also if its host name
is made to resolve to this machine (DNS rebinding): then the Host header has that name.
"""

import ipaddress
import json
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Default headers of every response."""

LONGEST_ADDRESS = 1000
"""Characters of a path and its query. Python refuses to read numbers of many more digits."""

WILDCARDS = ("0.0.0.0", "::")


def allowed_hosts(host: str, port: int, machine: str) -> set[str]:
    """The valid Host headers of a server that listens at a host and a port, on a machine with this name."""
    found = {host}
    if host in WILDCARDS:
        found |= {"localhost", machine, f"{machine}.local"}
    elif _is_loopback(host):
        found |= {"localhost"}
    return {_header(name.lower(), port) for name in found}


class Guard:
    """Passes requests from the server's own page, and answers 403 to all others."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], port: int, any_address: bool = False) -> None:
        """`any_address` also accepts a Host that is an IP address, which cannot be the name of another site."""
        self._app, self._hosts, self._port, self._any_address = app, set(hosts), port, any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        reason = self._refusal(scope, Headers(scope=scope))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if reason is None:
            await self._app(scope, receive, guarded)
        else:
            await _refuse(reason, guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> str | None:
        """Why a request is refused; None if it is not."""
        if len(scope["path"]) + len(scope.get("query_string", b"")) > LONGEST_ADDRESS:
            return "the address is too long"
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_own(_with_port(hosts[0].lower())):
            return "this server does not have that host name"
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return "requests from other origins are refused"
        followed = scope["path"] == "/" and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not followed:
            return "requests from other sites are refused"
        return None

    def _is_own(self, host: str) -> bool:
        if host in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        return self._any_address and port == str(self._port) and _is_address(name.strip("[]"))


def _with_port(host: str) -> str:
    """A Host header with its port; browsers omit port 80."""
    return host if host.rpartition(":")[2].isdigit() else f"{host}:80"


def named_hosts(name: str, port: int) -> set[str]:
    """The Host headers of a name, which may have a port of its own; a proxy's has none."""
    if name.count(":") == 1 and name.rpartition(":")[2].isdigit():
        return {name.lower()}
    return {_header(name.lower(), port), _header(name.lower(), 80)}


def _header(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


async def _refuse(reason: str, send: Send) -> None:
    body = json.dumps({"message": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
