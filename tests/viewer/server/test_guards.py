"""Who may ask the server, and what a request may be: everything else is refused."""

import asyncio
import socket
import time
from contextlib import suppress

import pytest
from served_model import Client, Serve
from starlette.responses import PlainTextResponse
from starlette.types import Message

from foveate.viewer.server import Limits
from foveate.viewer.server.guards import Guard, allowed_hosts
from foveate.viewer.server.serving import MAX_CONNECTIONS


@pytest.fixture
def client(served: Serve) -> Client:
    return served()


def test_the_page_runs_only_what_its_policy_names(client: Client) -> None:
    answer = client.get("/")
    assert answer.status == 200
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy.pop("script-src").startswith("'sha256-")
    assert policy.pop("style-src").startswith("'sha256-")
    none = ["default-src", "base-uri", "form-action", "frame-ancestors"]
    assert policy == {"img-src": "data:", "connect-src": "'self'", **dict.fromkeys(none, "'none'")}
    assert answer.headers["x-frame-options"] == "DENY"
    page = answer.body.decode()
    assert page.count("<script>") == page.count("</script>") - 1 == 1  # its own, and the block of data
    assert client.viewer.name not in page
    assert "Layers from &lt;nowhere&gt; &amp; &lt;/script&gt;" in page
    assert not [part for part in page.split('"') if part.startswith(("http:", "https:", "//"))]


@pytest.mark.parametrize("path", ["/", "/looks/x", "/nothing"])
def test_every_answer_is_guarded(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("evil.example:{port}", 403),
        ("localhost.evil.example:{port}", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:1", 403),
        ("127.0.0.2:{port}", 403),
        ("192.168.7.11:{port}", 403),
        ("", 403),
    ],
)
def test_only_its_own_name_is_served(client: Client, host: str, status: int) -> None:
    """Another name that leads here belongs to a page of another site."""
    assert client.get("/", host=host.format(port=client.port)).status == status
    refused = client("POST", "/looks", {"text": "x"}, {"host": host.format(port=client.port)})
    assert refused.status == (202 if status == 200 else 403)
    if status == 403:
        assert refused.json == {"message": "this server does not have that host name"}
        assert not client.viewer.seen


@pytest.mark.parametrize(
    ("host", "status"),
    [("192.168.7.11:{port}", 200), ("[fe80::7]:{port}", 200), ("evil.example:{port}", 403), ("192.168.7.11:1", 403)],
)
def test_a_server_for_all_is_known_by_its_addresses(served: Serve, host: str, status: int) -> None:
    client = served(host="0.0.0.0")
    assert client.get("/", host=host.format(port=client.port)).status == status
    assert client.get("/", host=f"{socket.gethostname().lower()}:{client.port}").status == 200


def test_two_hosts_are_none(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        own = f"127.0.0.1:{client.port}"
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(100).split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", ""]
)
def test_other_origins_may_not_ask(client: Client, origin: str) -> None:
    origin = origin.format(port=client.port)
    for answer in (client("POST", "/looks", {"text": "x"}, {"origin": origin}), client.get("/", origin=origin)):
        assert answer.status == 403
        assert answer.json == {"message": "requests from other origins are refused"}
    own = {"origin": f"http://127.0.0.1:{client.port}", "sec-fetch-site": "same-origin"}
    assert client("POST", "/looks", {"text": "x"}, own).status == 202


def test_other_sites_may_lead_to_the_page_but_take_nothing(client: Client) -> None:
    address = client.look("some words")
    cross = {"sec_fetch_site": "cross-site"}
    assert client.get("/", **cross, sec_fetch_mode="navigate").status == 200
    assert client.get("/", **cross, sec_fetch_mode="no-cors").status == 403
    assert client.get(address, **cross, sec_fetch_mode="navigate").status == 403
    assert client.get(address, sec_fetch_site="same-site").status == 403
    assert client.get(address, sec_fetch_site="same-origin").status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_only_json_is_looked_at(client: Client, kind: str) -> None:
    """What a form of another page could send is refused even without an Origin."""
    answer = client("POST", "/looks", b'{"text": "x"}', {"content-type": kind})
    assert (answer.status, answer.json) == (415, {"message": "the content type must be application/json"})


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "GET"])
def test_only_post_begins_a_look(client: Client, method: str) -> None:
    assert client(method, "/looks", {"text": "x"}).status == 405


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the request is not JSON"),
        (b"\xff", "the request is not JSON"),
        (b"[" * 50_000, "the request is not JSON"),
        (b'["examples"]', "the request is not a JSON object"),
        (b"{}", "the request must have text, as text"),
        (b'{"text": 5}', "the request must have text, as text"),
        (b'{"text": "x", "path": "/etc/passwd"}', "the request must have text, as text"),
        (b'{"name": "a.png", "data": ""}', "the request must have text, as text"),
    ],
    ids=range(8),
)
def test_another_request_is_refused(client: Client, body: bytes, message: str) -> None:
    answer = client("POST", "/looks", body)
    assert (answer.status, answer.json) == (400, {"message": message})


def test_a_large_request_is_not_read(served: Serve) -> None:
    """Neither one that says how large it is, nor one that does not."""
    client = served(tokens=7)
    most = Limits(tokens=7).body_bytes("text")
    body = b'{"text": "' + b"x" * most + b'"}'
    answer = client("POST", "/looks", body)
    assert (answer.status, answer.json) == (413, {"message": "the input is too large: at most 0.1 MiB are accepted"})
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        head = f"POST /looks HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        connection.sendall(b"10000\r\n" + b"x" * 2**16 + b"\r\n10000\r\n" + b"x" * 2**16 + b"\r\n")  # and does not end
        assert b" 413 " in connection.recv(4096)
    assert not client.viewer.seen


@pytest.mark.parametrize(
    "path",
    [
        "/looks/x",
        "/looks/x/maps/0",
        "/nothing",
        "/assets/page.css",
        "/../../etc/passwd",
        "/looks/../../etc/passwd",
        "//",
    ],
)
def test_what_there_is_not(client: Client, path: str) -> None:
    assert client.get(path).status == 404


@pytest.mark.parametrize(
    ("host", "status"), [("192.168.7.11", 200), ("[fe80::7]", 200), ("localhost:80", 200), ("192.168.7.11:81", 403)]
)
def test_the_port_of_the_web_is_left_out(host: str, status: int) -> None:
    """By a browser, in the header that names the server."""
    answers = []

    async def send(message: Message) -> None:
        answers.append(message)

    guard = Guard(PlainTextResponse("served"), allowed_hosts("0.0.0.0", 80, "box"), 80, any_address=True)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}
    asyncio.run(guard(scope, None, send))
    assert answers[0]["status"] == status


def test_a_number_of_five_thousand_digits_in_an_address(client: Client) -> None:
    answer = client.get(f"/looks/x/maps/{'9' * 5000}")
    assert answer.status == 403
    assert b"the address is too long" in answer.body


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that wait for clients a fifth of a second."""
    monkeypatch.setattr("foveate.viewer.server.serving.PATIENCE", dict.fromkeys(("head", "body", "answer"), 0.2))
    monkeypatch.setattr("foveate.viewer.server.serving.WATCH_SECONDS", 0.05)


@pytest.mark.usefixtures("impatient")
def test_silent_connections_are_closed(served: Serve) -> None:
    """More of them than connections are accepted kept everybody out."""
    client = served()
    silent = [socket.create_connection(("127.0.0.1", client.port), timeout=10) for _ in range(MAX_CONNECTIONS + 6)]
    try:
        assert all(is_closed(connection) for connection in silent)
    finally:
        for connection in silent:
            connection.close()
    assert client.get("/").status == 200


def is_closed(connection: socket.socket) -> bool:
    """Read until the server closes a connection, as it must within its timeout."""
    try:
        while connection.recv(2**16):
            pass
    except ConnectionError:
        pass
    return True


PAGE = "GET /looks/none HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"

POSTED = "POST /looks HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "begun",
    [
        PAGE,
        f"{PAGE}\r\n{PAGE}",
        f"{PAGE}\r\n{PAGE}\r\n{POSTED}",
        f"{POSTED}Content-Length: 1000\r\n\r\n{{",
        f"{PAGE}\r\n{POSTED}Content-Length: 1000\r\n\r\n{{",
        f"{POSTED}Transfer-Encoding: chunked\r\n\r\n100\r\n{{",
        f"{PAGE}Content-Length: 1000\r\n\r\n{{",
        f"{PAGE}Transfer-Encoding: chunked\r\n\r\n100\r\n{{",
    ],
    ids=["head", "later head", "third head", "body", "later body", "chunk", "body that nobody reads", "chunk of it"],
)
def test_a_request_that_comes_byte_by_byte(served: Serve, begun: str) -> None:
    """The connection is closed, though each byte comes in time."""
    client = served()
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(begun.replace("{port}", str(client.port)).encode())
        assert is_refused(connection, b"x", 0.05)
    assert client.get("/").status == 200


def is_refused(connection: socket.socket, sent: bytes, pause: float = 0) -> bool:
    """Send the same again and again, for at most 20 seconds. Returns whether the server closed the connection."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            connection.sendall(sent)
        except TimeoutError:
            continue
        except ConnectionError:
            return True
        time.sleep(pause)
    return False


@pytest.mark.usefixtures("impatient")
def test_a_client_that_reads_no_answer(served: Serve) -> None:
    """It asks for more than fits between the two."""
    client = served()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.1)
        connection.connect(("127.0.0.1", client.port))
        request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode()
        assert is_refused(connection, request)
    assert client.get("/").status == 200


@pytest.mark.usefixtures("impatient")
def test_a_client_that_waits_for_a_slow_model_is_not_closed(served: Serve) -> None:
    client = served()
    client.viewer.before = lambda given: time.sleep(1)
    assert client.wait(client.look("some words")).status == 200


@pytest.mark.parametrize(
    ("length", "sent", "statuses"),
    [
        ("Content-Length: 5", b'{"text": "x"}', [400]),
        ("Content-Length: 14", b'{"text": "x"}', []),
        ("Content-Length: 13", b'{"text": "x"} and more\r\n\r\n', [202, 400]),
        ("Content-Length: -1", b'{"text": "x"}', [400]),
        ("Content-Length: x", b'{"text": "x"}', [400]),
        ("Content-Length: 13\r\nContent-Length: 14", b'{"text": "x"}', [400]),
        ("Content-Length: " + "9" * 30, b'{"text": "x"}', [400]),
        ("Content-Length: " + "9" * 19, b'{"text": "x"}', [413]),
        ("Transfer-Encoding: gzip", b'{"text": "x"}', [400]),
        ("Transfer-Encoding: chunked", b'd\r\n{"text": "x"}\r\n0\r\n\r\n', [202]),
        ("Transfer-Encoding: chunked", b'7\r\n{"text": "x"}\r\n0\r\n\r\n', [400]),
        ("Transfer-Encoding: chunked", b"x\r\n", [400]),
        ("Transfer-Encoding: chunked\r\nContent-Length: 13", b'{"text": "x"}\r\n', [400]),
        ("X: no length", b"", [400]),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_body_of_another_length(served: Serve, length: str, sent: bytes, statuses: list[int]) -> None:
    client, received = served(), bytearray()
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection, suppress(ConnectionError):
        connection.sendall(f"{POSTED.format(port=client.port)}{length}\r\n\r\n".encode() + sent)
        while part := connection.recv(2**16):
            received += part
    assert [int(part.split()[0]) for part in bytes(received).split(b"HTTP/1.1 ")[1:]] == statuses
    assert client.wait(client.look("a sound request")).status == 200


def test_a_client_that_leaves_while_it_uploads(client: Client, capfd: pytest.CaptureFixture) -> None:
    head = f"POST /looks HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    assert client.get("/").status == 200
    assert "Traceback" not in capfd.readouterr().err
