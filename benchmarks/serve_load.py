"""Many clients of one `foveate serve`: whether it loses an answer, answers wrongly, or grows.

    python benchmarks/serve_load.py
    python benchmarks/serve_load.py --users 50 --minutes 1 --model runs/mine --inputs texts.txt

Each client asks about a text at a time, as soon as the last one is answered. An answer is compared with that of the
skill in Python. Without `--model`, a small classifier is trained for a few steps. Prints answers a second beside those
of one client, times, and the memory at the beginning and at the end.
"""

import argparse
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import foveate

WORDS = ("film", "plot", "great", "dull", "actor", "scene", "poor", "lovely", "ending", "music", "long", "bright")


@dataclass
class Tally:
    """What happened, over all clients."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def client(port: int, texts: Sequence[str], expected: dict[str, Any], end: float, tally: Tally, seed: int) -> None:
    """Ask until the time is over."""
    drawn, connection = random.Random(seed), http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while time.monotonic() < end:
        text = drawn.choice(texts)
        begin = time.monotonic()
        try:
            body = json.dumps({"input": text}).encode()
            connection.request("POST", "/answer", body, {"content-type": "application/json"})
            response = connection.getresponse()
            found = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()
            with tally.lock:
                tally.lost += 1
            continue
        with tally.lock:
            tally.seconds.append(time.monotonic() - begin)
            if response.status != 200 or not alike(found, expected[text]):
                tally.wrong.append(f"{text}: {found}")
    connection.close()


def alike(found: Any, expected: Any) -> bool:
    """Whether two answers are equal, but for the rounding of numbers."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(alike(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    return abs(found - expected) < 1e-4 if isinstance(expected, float) else bool(found == expected)


def small_classifier(folder: Path) -> Path:
    """A classifier of made texts, after a few steps."""
    drawn = random.Random(1)
    lines = [f"{label}\t{' '.join(drawn.choices(WORDS, k=12))}" for label in ("good", "bad") * 200]
    (folder / "texts.tsv").write_text("\n".join(lines))
    settings: dict[str, Any] = {"data": (folder / "texts.tsv",), "steps": 20, "epochs": None, "out": folder / "run"}
    foveate.train(foveate.recipe("classify", model="transformer-classifier", **settings))
    return folder / "run"


def megabytes(process: int) -> float:
    """The memory that a process has now."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1]) / 1024  # type: ignore[index]


def ask(port: int, users: int, texts: Sequence[str], expected: dict[str, Any], seconds: float) -> Tally:
    """What this many clients meet."""
    tally, end = Tally(), time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(port, texts, expected, end, tally, seed)) for seed in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--inputs", type=Path, help="texts, one a line")
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=1.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        model = chosen.model or small_classifier(Path(place))
        drawn = random.Random(2)
        made = [" ".join(drawn.choices(WORDS, k=drawn.randint(1, 30))) for _ in range(200)]
        texts = chosen.inputs.read_text(encoding="utf-8").splitlines() if chosen.inputs else made
        expected = dict(zip(texts, answers(model, texts), strict=True))
        command = [sys.executable, "-m", "foveate", "serve", str(model), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
            assert server.stdout
            server.stdout.readline()
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])  # type: ignore[index]
            print("| clients | answers | answers a second | median, ms | 99 of 100 within, ms | lost | wrong | MB |")
            print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
            for users, seconds in ((1, 10.0), (chosen.users, 60 * chosen.minutes)):
                tally = ask(port, users, texts, expected, seconds)
                times = sorted(tally.seconds)
                cells = (
                    f"{users} | {len(times):,} | {len(times) / seconds:.0f} | {1000 * times[len(times) // 2]:.1f} | "
                    f"{1000 * times[int(0.99 * (len(times) - 1))]:.1f} | {tally.lost} | {len(tally.wrong)}"
                )
                print(f"| {cells} | {megabytes(server.pid):.0f} |", flush=True)
                for line in tally.wrong[:3]:
                    print(line, file=sys.stderr)
            server.terminate()
            print(f"ended with {server.wait(60)}", file=sys.stderr)


def answers(model: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The answers of the skill in Python, as JSON has them."""
    command = [sys.executable, "-m", "foveate", "run", str(model), "--json"]
    found = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


if __name__ == "__main__":
    main()
