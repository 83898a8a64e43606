"""`foveate explore`: that it serves, and the one line for what goes wrong; the server itself is tested beside it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable

import pytest
from small import Trained

from foveate.cli import explore
from foveate.viewer.protocol import ModelViewer
from foveate.viewer.server import Address, Limits, serving

Fails = Callable[..., str]


def test_it_serves_until_it_is_stopped(trained: Trained) -> None:
    command = [sys.executable, "-m", "foveate", "explore", str(trained.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            _use(process, trained)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()  # without it, a failure would wait for the server for ever
    assert (out, err, process.returncode) == ("", "", 0)


def _use(process: subprocess.Popen[str], trained: Trained) -> None:
    """Load the page of a server that has just started, and look at one text."""
    assert process.stdout is not None
    name, address = process.stdout.readline(), process.stdout.readline()
    assert name == f"rnn-attentive from {trained.folder}\n"
    found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\n", address)
    assert found is not None
    with urllib.request.urlopen(found[1], timeout=30) as answer:
        assert b"rnn-attentive" in answer.read()
    body, headers = json.dumps({"text": "red cat"}).encode(), {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{found[1]}looks", body, headers), timeout=30) as answer:
        begun = json.loads(answer.read())["id"]
    while (answer := urllib.request.urlopen(f"{found[1]}looks/{begun}", timeout=30)).status == 202:
        answer.close()
    with answer:
        assert "Output: " in json.loads(answer.read())["notes"][1]


def test_flags_reach_the_server(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(
        explore, "serve", lambda viewer, place, limits, say, browser, second: given.extend([place, limits, browser])
    )
    explore.main([str(trained.folder), "--host", "::1", "--port", "8123", "--max-tokens", "77", "--open"])
    explore.main([str(trained.folder)])
    assert given == [
        Address("::1", 8123),
        Limits(tokens=77),
        True,
        Address("127.0.0.1", 0),
        Limits(tokens=32768),
        False,
    ]


def test_a_second_model_stands_beside_the_first(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def serve(viewer: ModelViewer, *_others: object) -> None:
        second = _others[-1]
        assert isinstance(second, ModelViewer)
        names.extend([viewer.name, second.name])

    monkeypatch.setattr(explore, "serve", serve)
    explore.main([str(trained.folder), "--beside", str(trained.folder)])
    assert names == [f"rnn-attentive from {trained.folder}"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing from foveate explore: MODEL"),
        (["missing"], "there is no folder missing, nor trained weights of this name"),
        (["RUN", "--port", "70000"], "port is 70000, but must be from 0 to 65535"),
        (["RUN", "--port", "TAKEN"], "cannot listen at 127.0.0.1, port TAKEN: Address already in use"),
        (["RUN", "--host", "no such host"], "cannot listen at no such host, port 0: "),
        (["RUN", "--beside", "missing"], "there is no folder missing, nor trained weights of this name"),
        (["RUN", "--max-tokens", "0"], "max_tokens is 0, but must be at least 1"),
        (["RUN", "--device", "cuda:77"], "device 'cuda:77' cannot be used on this machine"),
        (["RUN", "text"], "unexpected 'text'; see foveate explore --help"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_mistakes(fails: Fails, trained: Trained, arguments: list[str], message: str) -> None:
    with serving.listen(Address()) as taken:
        port = str(taken.getsockname()[1])
        filled = [str(trained.folder) if each == "RUN" else each.replace("TAKEN", port) for each in arguments]
        assert fails("explore", *filled).startswith(message.replace("TAKEN", port))
