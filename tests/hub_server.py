"""A stub of a hub on this machine, which huggingface_hub asks as it asks the real one."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from foveate.data.sources.hub import OFFLINE
from foveate.errors import UserError

SHA = "5" * 40
Files = dict[str, bytes]


class Stub(BaseHTTPRequestHandler):
    """The part of the hub's interface that lists files and hands them out."""

    repositories: ClassVar[dict[str, Files]] = {}
    asked: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].strip("/")
        self.asked.append(path)
        for name, files in self.repositories.items():
            kind, _, short = name.partition("/")
            place = short if kind == "models" else name
            if path.startswith(f"api/{name}") and "/tree/" not in path:
                listed = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
                self._answer(json.dumps({"id": short, "sha": SHA, "siblings": listed}).encode(), "application/json")
                return
            if path.startswith(f"{place}/resolve/{SHA}/") and (file := path.split(SHA + "/")[1]) in files:
                self._answer(files[file], "application/octet-stream")
                return
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        digest = hashlib.sha256(content).hexdigest()
        for name, value in {"Content-Type": kind, "X-Repo-Commit": SHA, "ETag": f'"{digest}"'}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def running_hub(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[type[Stub]]:
    """The hub, empty, with an empty cache."""
    Stub.repositories, Stub.asked = {}, []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{running.server_port}")
    monkeypatch.setenv("FOVEATE_CACHE", str(cache))
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    yield Stub
    running.shutdown()
    running.server_close()


def contents(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(call: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def silent(line: str) -> None:
    pass
