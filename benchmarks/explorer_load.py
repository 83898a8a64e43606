"""Many users of one `foveate explore`: whether it loses a look, answers wrongly, or grows.

    python benchmarks/explorer_load.py
    python benchmarks/explorer_load.py --users 50 --minutes 10 --model runs/mine

Each user has a browser's cookie, looks at texts, opens heads and zooms, and goes back to the last looks. Some leave
while a look is computed. Meanwhile others send requests as slowly as they can, and read no answers. Each answer is
compared with that of a single user before. Without `--model`, a tiny translator is trained for one step.
"""

import argparse
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

WORDS = [f"w{number}" for number in range(50)]

KEPT = 6
"""Looks that a page remembers."""

PARTS = (
    "maps/0",
    "maps/1",
    "rows/0/0?rows=0,3",
    "tile/0/1?rows=0,3&columns=0,3&size=3,3",
    "tile/1/0?rows=1,3&columns=0,2&size=1,1",
)
"""What a page asks for of a look at three tokens or more."""


@dataclass
class Tally:
    """What happened, over all users."""

    requests: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    """Looks among the last of a user that the server no longer had."""
    wrong: list[str] = field(default_factory=list)
    """Answers other than those of a single user."""
    refused: int = 0
    """Requests that were to be sent again."""
    seconds: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def line(self) -> str:
        times = sorted(self.seconds) or [0.0]
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.requests.items()))
        middle, late = times[len(times) // 2], times[int(0.99 * (len(times) - 1))]
        return (
            f"{self.requests.total():,} requests ({kinds}), {self.lost} lost, {len(self.wrong)} wrong, "
            f"{self.refused} refused; {middle:.3f} s in the middle, {late:.3f} s at the 99th of 100"
        )


class Browser:
    """A browser with its cookie and one connection."""

    def __init__(self, port: int, tally: Tally) -> None:
        self.port, self.tally, self.cookie = port, tally, ""
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, kind: str, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """The status and the body of an answer; what is refused because of too many requests is sent again."""
        headers = {"cookie": self.cookie} if self.cookie else {}
        data = None if body is None else json.dumps(body).encode()
        headers |= {} if body is None else {"content-type": "application/json"}
        while True:
            began = time.monotonic()
            try:
                self.connection.request(method, path, data, headers)
                answer = self.connection.getresponse()
                status, content = answer.status, answer.read()
            except (
                http.client.BadStatusLine,
                ConnectionError,
            ):  # a silent connection was closed: a browser opens another
                self.connection.close()
                continue
            with self.tally.lock:
                self.tally.requests[kind] += 1
                self.tally.seconds.append(time.monotonic() - began)
                self.tally.refused += status == 503
            if given := answer.getheader("set-cookie"):
                self.cookie = given.partition(";")[0]
            if status != 503:
                return status, content
            time.sleep(0.2)

    def look(self, text: str) -> tuple[str, bytes]:
        """The address of a look at a text, and the head of its page."""
        _, begun = self.ask("looks", "POST", "/looks", {"text": text})
        address = f"/looks/{json.loads(begun)['id']}"
        while (found := self.ask("heads", "GET", address))[0] == 202:
            pass
        return address, found[1]

    def leave(self, text: str) -> None:
        """Begin a look, and close the connection while it is computed."""
        _, begun = self.ask("looks", "POST", "/looks", {"text": text})
        self.connection.putrequest("GET", f"/looks/{json.loads(begun)['id']}")
        self.connection.endheaders()
        self.connection.close()


def answers(browser: Browser, text: str) -> dict[str, bytes]:
    """What a page has of a text."""
    address, head = browser.look(text)
    found = {part: browser.ask(part[:4], "GET", f"{address}/{part}") for part in PARTS}
    assert all(status == 200 for status, _ in found.values()), found
    return {"": head} | {part: content for part, (_, content) in found.items()}


def use(port: int, tally: Tally, known: dict[str, dict[str, bytes]], until: float, pause: float, seed: int) -> None:
    """One user, until the time is over."""
    browser = Browser(port, tally)
    rng, looks = random.Random(seed), deque[tuple[str, str]](maxlen=KEPT)

    def check(text: str, part: str, found: bytes) -> None:
        if found != known[text][part]:
            with tally.lock:
                tally.wrong.append(f"{text}: {part}: {found[:200]!r}")

    browser.ask("pages", "GET", "/")
    while time.monotonic() < until:
        act = rng.random()
        if act < 0.05:
            browser.ask("pages", "GET", "/")
        elif act < 0.1:
            browser.leave(rng.choice([*known]))
        elif act < 0.4 or not looks:
            address, head = browser.look(text := rng.choice([*known]))
            looks.append((text, address))
            check(text, "", head)
        else:
            text, address = rng.choice(looks)
            part = rng.choice(["", *PARTS])
            status, found = browser.ask(part[:4] or "heads", "GET", f"{address}/{part}".rstrip("/"))
            if status == 404:
                with tally.lock:
                    tally.lost += 1
            else:
                check(text, part, found)
        time.sleep(rng.uniform(0, 2 * pause))
    browser.connection.close()


def hinder(port: int, until: float, seed: int) -> None:
    """A client that sends a head or a body byte by byte, or reads no answers."""
    rng = random.Random(seed)
    host = f"host: 127.0.0.1:{port}\r\n"
    whole = f"GET / HTTP/1.1\r\n{host}\r\n".encode()
    body = f"POST /looks HTTP/1.1\r\n{host}content-type: application/json\r\ncontent-length: 5000\r\n\r\n{{".encode()
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(rng.choice([whole[:9], whole + whole[:9], body, 300 * whole]))
            while time.monotonic() < until:
                time.sleep(0.1)
                connection.sendall(b"x")


def load(port: int, users: int, seconds: float, texts: Sequence[str], pause: float, hinderers: int) -> Tally:
    """Use a server by several users at once."""
    alone = Browser(port, Tally())
    known = {text: answers(alone, text) for text in texts}
    alone.connection.close()
    tally, until = Tally(), time.monotonic() + seconds
    threads = [threading.Thread(target=use, args=(port, tally, known, until, pause, seed)) for seed in range(users)]
    threads += [threading.Thread(target=hinder, args=(port, until, seed)) for seed in range(hinderers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def random_texts(count: int, longest: int, rng: random.Random) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, longest))) for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two requests of a user, in the mean")
    parser.add_argument("--hinderers", type=int, default=10)
    parser.add_argument("--model", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, serving(asked.model or train(Path(name))) as (port, process):
        ended = threading.Event()
        threading.Thread(target=tell_memory, args=(process, ended), daemon=True).start()
        texts = random_texts(40, 9, random.Random(1))
        tally = load(port, asked.users, 60 * asked.minutes, texts, asked.pause, asked.hinderers)
        ended.set()
        print(f"{asked.users} users, {asked.minutes} minutes: {tally.line()}")
        print("\n".join(tally.wrong[:5]), f"{memory(process):.0f} MiB at the end")


def train(folder: Path) -> Path:
    """The run folder of a tiny translator."""
    rng = random.Random(2)
    rows = random_texts(300, 8, rng)
    (folder / "pairs.tsv").write_text("".join(f"{row}\t{row}\n" for row in rows), encoding="utf-8")
    told = ["--data", str(folder / "pairs.tsv"), "--out", str(folder / "run"), "--steps", "1", "--vocabulary", "80"]
    command = [sys.executable, "-m", "foveate", "train", "translate", "--model", "transformer-tiny", *told]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "run"


@contextmanager
def serving(model: Path) -> Iterator[tuple[int, int]]:
    """The port and the process of a `foveate explore`."""
    command = [sys.executable, "-m", "foveate", "explore", str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = [process.stdout.readline() for _ in range(2)][1]
        found = re.search(r":(\d+)/", address)
        assert found is not None, address
        try:
            yield int(found[1]), process.pid
        finally:
            process.kill()


def memory(process: int) -> float:
    """Resident memory of a process, in MiB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def tell_memory(process: int, ended: threading.Event) -> None:
    began = time.monotonic()
    while not ended.wait(30):
        print(f"{(time.monotonic() - began) / 60:.1f} minutes: {memory(process):.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
