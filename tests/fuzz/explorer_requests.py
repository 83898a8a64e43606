"""Requests and uploads of the explorer, damaged at random: its server answers each, and a sound one afterwards."""

import base64
import io
import json
import random
import socket
import threading
import time
import wave
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image

from foveate.cli import main
from foveate.tasks.viewers import open_model
from foveate.viewer.protocol import ModelViewer
from foveate.viewer.server import Address, Limits, make_application
from foveate.viewer.server.serving import listen, make_server
from foveate.viewer.server.worker import Worker

WAIT = 120
"""Seconds for an answer, on a machine that does much else."""

LEAVE = 0.5
"""Seconds after which a client leaves that has not sent all that it announced."""

PARTS = [
    *("maps/0", "maps/7", "rows/0/0?rows=0,2", "rows/0/0?rows=2,1", "rows/0/99?rows=0,1"),
    *("tile/0/0?rows=0,1&columns=0,2&size=1,1", "tile/0/0?rows=0,1&columns=0,2&size=512,512", "tile/0/0"),
]
"""Parts of a look that its page asks for, and some that are none."""

ADDRESS_PIECES = [
    *("9" * 300, "9" * 5000, "-1", "1e9", "%00", "%ff", "%ud800", "..", "~", "~~~", "/", "//", "\u00e9", "?", "&", "="),
    *("rows=0,1", "size=1,999999999", "model=second", "model=", "\t", "'", "<b>", ";", "#", "x" * 400),
]
"""What stands in an address where something else belongs."""

METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "get", "\u00e9", "X" * 300]

HEADERS = [
    *("content-type: text/plain", "content-type: application/json; charset=utf-16", "content-type:", "host: elsewhere"),
    *("origin: null", "origin: http://elsewhere", "content-length: 99999999999", "content-length: -1", "x: \u00e9"),
    *("content-length: 1e3", "transfer-encoding: chunked", "transfer-encoding: gzip", "expect: 100-continue"),
    *("upgrade: websocket", "connection: upgrade", "range: bytes=0-1", "sec-fetch-site: cross-site", "no header"),
    *("content-encoding: gzip", "accept: \0", f"cookie: {'x' * 20_000}", f"content-length: {'9' * 5000}"),
]

TEXTS = [
    *("", " ", "\0", "\ud800", "\u202e", "x" * 3000, "words " * 2000, "\n\n", "\U0001f642" * 50, "<script>", "\x1b[2J"),
    *("%s", "a\u00a0b", "\ufeff", "\u0301" * 99, "fine words 7"),
]

_SPEECH = {"width": 16, "heads": 2, "feedforward": 32, "convolution": 16, "encoder_layers": 1, "decoder_layers": 1}

MODELS: dict[str, tuple[str, str, dict[str, int]]] = {
    "image": ("classify-image", "vit-tiny", {"width": 16, "heads": 2, "feedforward": 32, "layers": 1}),
    "audio": ("transcribe", "speech-transformer-tiny", _SPEECH),
    "question": ("answer", "show-ask-tiny", {"width": 16, "embedding": 16, "hidden": 16, "classifier": 32}),
}
"""The task, the preset and its sizes of a model that reads each kind of file."""

VALUES: list[Any] = [None, True, 0, 1e308, [], {}, ["x"], {"text": "x"}, "", "x" * 5000, "\ud800"]


class Answered(NamedTuple):
    status: int
    body: bytes

    @property
    def told(self) -> Any:
        """What the JSON of the body says; None for another body."""
        with suppress(ValueError):
            return json.loads(self.body)
        return None


class Explorers:
    """Servers of small models that read a text, an image, a sound; each is begun when it is first asked."""

    def __init__(self, folder: Path, text_run: Path) -> None:
        self.folder, self._runs = folder, {"text": text_run}
        self._ports: dict[str, int] = {}
        self._viewers: dict[str, ModelViewer] = {}

    def port(self, takes: str) -> int:
        if takes not in self._ports:
            viewer, listener = open_model(self._run(takes)), listen(Address("127.0.0.1"))
            self._ports[takes], self._viewers[takes] = listener.getsockname()[1], viewer
            application = make_application(viewer, Limits(), Worker(64))
            server = make_server(application, "127.0.0.1", self._ports[takes])
            threading.Thread(target=server.run, args=([listener],), daemon=True).start()
        return self._ports[takes]

    def _run(self, takes: str) -> Path:
        """The run folder of a model that reads such inputs."""
        if takes not in self._runs:
            task, model, sizes = MODELS[takes]
            flags = [text for name, size in sizes.items() for text in (f"--architecture.{name}", str(size))]
            out, table, said = self.folder / f"{takes}-run", self._table(takes), io.StringIO()
            common = ["--data", str(table), "--out", str(out), "--model", model, "--steps", "1", "--threads", "1"]
            try:
                with redirect_stdout(said), redirect_stderr(said):
                    main(["train", task, *common, *flags])
            except SystemExit:
                raise AssertionError(said.getvalue()) from None
            self._runs[takes] = out
        return self._runs[takes]

    def _table(self, takes: str) -> Path:
        """A folder of two classes of images; else a table of small images or sounds, beside them."""
        folder, draw, lines = self.folder / takes, np.random.default_rng(3), []
        for label in ("ab", "cd"):
            (folder / label).mkdir(parents=True)
        for number in range(44):
            label = ("ab", "cd")[number % 2]
            name = f"{label}/{number}.{'wav' if takes == 'audio' else 'png'}"
            if takes == "audio":
                write_tone(folder / name, 4000 + number)
            else:
                PIL.Image.fromarray(draw.integers(0, 255, (24, 31, 3), np.uint8)).save(folder / name)
            lines.append(f"{name}\twhat is it?\t{label}" if takes == "question" else f"{name}\t{label}")
        if takes == "image":
            return folder
        (folder / "table.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder / "table.tsv"

    def send(self, takes: str, request: bytes, whole: bool = True) -> Answered | None:
        """The answer to the bytes of a request; None if the server hangs up. The server may wait for the rest of one
        that is not `whole`, so that the client leaves soon."""
        with socket.create_connection(("127.0.0.1", self.port(takes)), timeout=WAIT if whole else LEAVE) as connection:
            received = bytearray()
            with suppress(ConnectionError, *([] if whole else [TimeoutError])):
                connection.sendall(request)
                while part := connection.recv(2**16):
                    received += part
        head, _, body = bytes(received).partition(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100"):
            head, _, body = body.partition(b"\r\n\r\n")
        return Answered(int(head.split()[1]), body) if head else None

    def request(
        self, takes: str, method: str, address: str, body: bytes | None = None, headers: tuple[str, ...] = ()
    ) -> bytes:
        """The bytes of a request, as the page makes it; `headers` take the place of its own."""
        own = [f"host: 127.0.0.1:{self.port(takes)}", "connection: close"]
        if body is not None:
            own += ["content-type: application/json", f"content-length: {len(body)}"]
        names = [header.partition(":")[0] for header in headers]
        lines = [line for line in own if line.partition(":")[0] not in names] + list(headers)
        head = "\r\n".join([f"{method} {address} HTTP/1.1", *lines])
        return head.encode("utf-8", "replace") + b"\r\n\r\n" + (body or b"")

    def looked(self, takes: str, body: dict[str, Any]) -> tuple[str, Answered]:
        """The address of a look at an input, and the answer about it once it is there."""
        begun = self.send(takes, self.request(takes, "POST", "/looks", json.dumps(body).encode()))
        if begun is None or begun.status != 202:
            return "", checked(begun)
        address, deadline = f"/looks/{begun.told['id']}", time.monotonic() + WAIT
        while (answer := self.send(takes, self.request(takes, "GET", address))) is None or answer.status == 202:
            assert time.monotonic() < deadline, f"no look after {WAIT} seconds"
            time.sleep(0.01)
        return address, checked(answer)

    def sound(self, takes: str) -> dict[str, Any]:
        """A request that is as it should be."""
        if takes == "text":
            return {"text": "fine words 7"}
        self._run(takes)
        path = self.folder / takes / "ab" / f"0.{'wav' if takes == 'audio' else 'png'}"
        question = {"question": "what is it?"} if takes == "question" else {}
        return {"name": path.name, "data": base64.b64encode(path.read_bytes()).decode(), **question}


def checked(answer: Answered | None) -> Answered:
    """An answer that does not blame the server, and says in one line what was wrong."""
    assert answer is not None, "the server hung up"
    assert 200 <= answer.status < 500, f"status {answer.status}: {answer.body[:300]!r}"
    if answer.status >= 400 and answer.body:
        told = answer.told
        message = told["message"] if isinstance(told, dict) else answer.body.decode()
        assert message.strip(), f"status {answer.status} without a word"
        assert len(message.splitlines()) == 1, f"several lines: {message!r}"
        assert len(message) < 1000, f"a message of {len(message):,} characters"
    return answer


Damage = Callable[[bytes, random.Random], bytes]


def explore(explorers: Explorers, draw: random.Random, damage: Damage) -> None:
    """One damaged request, and then a sound one."""
    takes = draw.choice(["text", *MODELS])
    kind = draw.choice([_bytes, _address, _headers, _body, _upload, _upload])
    kind(explorers, takes, draw, damage)
    address, answer = explorers.looked(takes, explorers.sound(takes))
    assert answer.status == 200, f"a sound request after it: {answer}"
    part = draw.choice(PARTS)
    checked(explorers.send(takes, explorers.request(takes, "GET", f"{address}/{part}")))


def _bytes(explorers: Explorers, takes: str, draw: random.Random, damage: Damage) -> None:
    """A request of which some bytes are others: the server may hang up."""
    body = json.dumps(explorers.sound(takes)).encode()
    answer = explorers.send(takes, damage(explorers.request(takes, "POST", "/looks", body), draw), whole=False)
    if answer is not None:
        checked(answer)


def _address(explorers: Explorers, takes: str, draw: random.Random, damage: Damage) -> None:
    address, _ = explorers.looked(takes, explorers.sound(takes))
    whole = draw.choice(["/", address, f"{address}/{draw.choice(PARTS)}", f"{address}~{address[7:]}/maps/0"])
    for _ in range(draw.randint(1, 2)):
        place = draw.randrange(1, len(whole) + 1)
        end = min(len(whole), place + draw.choice([0, 0, 1, 4]))
        whole = whole[:place] + draw.choice(ADDRESS_PIECES) + whole[end:]
    answer = explorers.send(takes, explorers.request(takes, draw.choice(["GET", "GET", *METHODS]), whole), False)
    if answer is not None:
        checked(answer)


def _headers(explorers: Explorers, takes: str, draw: random.Random, damage: Damage) -> None:
    body = json.dumps(explorers.sound(takes)).encode()
    headers = tuple(draw.sample(HEADERS, draw.randint(1, 3)))
    address = draw.choice(["/", "/looks", "/writings"])
    method = draw.choice(["POST", "POST", *METHODS])
    answer = explorers.send(takes, explorers.request(takes, method, address, body, headers), False)
    if answer is not None:
        checked(answer)


def _body(explorers: Explorers, takes: str, draw: random.Random, damage: Damage) -> None:
    """JSON with other values or keys, or nested, or cut."""
    body = explorers.sound(takes)
    key = draw.choice([*body, "name", "question", "text", "chat", "\ud800"])
    value = draw.choice([*VALUES, *TEXTS, "DEEP"])
    body[key] = value
    if draw.random() < 0.3:
        body.pop(draw.choice([*body]))
    content = json.dumps(body).replace('"DEEP"', "[" * 50_000 + "]" * 50_000).encode()
    if draw.random() < 0.3:
        content = damage(content, draw)
    address = draw.choice(["/looks", "/looks", "/looks?model=second", "/writings"])
    begun = checked(explorers.send(takes, explorers.request(takes, "POST", address, content)))
    if begun.status == 202:
        address = f"/looks/{begun.told['id']}"
        while (answer := explorers.send(takes, explorers.request(takes, "GET", address))) and answer.status == 202:
            time.sleep(0.01)
        checked(answer)


def _upload(explorers: Explorers, takes: str, draw: random.Random, damage: Damage) -> None:
    """A text, an image or a sound that is damaged, or is one of another kind."""
    if takes == "text":
        text = draw.choice(TEXTS) + draw.choice(["", " ", "words", *TEXTS])
        address, answer = explorers.looked(takes, {"text": text})
    else:
        other = explorers.sound(draw.choice([takes, takes, takes, "image", "audio"]))
        data = damage(base64.b64decode(other["data"]), draw)
        name = draw.choice([other["name"], "", "../x", "\0", "x" * 999, "a\nb", "\ud800", "a.gif"])
        question = {"question": draw.choice(TEXTS)} if takes == "question" else {}
        address, answer = explorers.looked(takes, {"name": name, "data": base64.b64encode(data).decode(), **question})
    if answer.status == 200:
        checked(explorers.send(takes, explorers.request(takes, "GET", f"{address}/{draw.choice(PARTS)}")))


def write_tone(path: Path, samples: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((8000 * np.sin(np.arange(samples) / 9)).astype("<i2").tobytes())
