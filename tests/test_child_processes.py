"""A process that another one of foveate's starts ends with it, however that one ends."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ended_processes import still_running

from foveate import child_processes
from foveate.child_processes import BY_TORCHRUN, PARENT, STORE_OF_TORCHRUN, child_environment, end_with_parent

LONG = "bench dot-scaling --out {out} --widths 2 8 --positions 5 --repeats 100000000"

GALLERY = f"""
import sys
from pathlib import Path
from foveate.experiments.gallery import build_gallery
from foveate.experiments.gallery_rows import GalleryRow
build_gallery([GalleryRow("long", "much", ({LONG!r},), ("none.png",), 50, "docs/x.md")], Path(sys.argv[1]), print)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="finds processes by /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_the_gallery_started_ends_with_it(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", GALLERY, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as gallery:
        deadline = time.monotonic() + 60
        while not (children := _children(gallery.pid)):
            assert gallery.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2)
        gallery.send_signal(number)
        gallery.wait(20)
    assert not still_running(children, 30)


def test_a_process_knows_a_parent_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent is then another process: that of the machine, which never ends."""
    watched: list[int] = []
    monkeypatch.setattr(child_processes, "_watch", watched.append)
    for variables in ({}, {PARENT: "7"}, {BY_TORCHRUN: "x"}, {PARENT: "7", BY_TORCHRUN: "x"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        end_with_parent()
        for thread in threading.enumerate():
            if thread.name == "foveate-parent":
                thread.join()
        assert PARENT not in os.environ, "what this process starts has another parent"
        monkeypatch.delenv(BY_TORCHRUN, raising=False)
    assert watched == [7, os.getppid(), 7]


def test_a_process_watches_its_parent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, ended = [], threading.Event()

    def watch(parent: int) -> None:
        watched.append(parent)
        ended.wait(20)

    monkeypatch.setattr(child_processes, "_watch", watch)
    monkeypatch.setenv(BY_TORCHRUN, "x")
    end_with_parent()
    end_with_parent()
    ended.set()
    assert watched == [os.getppid()]


SLOW_END = """
import atexit, signal, sys, time
from foveate.child_processes import end_with_parent

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(print("saved")))
atexit.register(time.sleep, 100)
end_with_parent()
time.sleep(100)
"""


def test_a_process_that_lost_its_parent_ends_once_it_has_saved() -> None:
    """It does not wait until its libraries have ended, which once took half a minute on a busy machine."""
    environment = {**os.environ, PARENT: "1", "PYTHONUNBUFFERED": "x"}
    command = [sys.executable, "-c", SLOW_END]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=80)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "saved\n")


ORPHAN = """
import time
from foveate.child_processes import end_with_parent

end_with_parent()
time.sleep(2)
"""


@pytest.mark.parametrize("listens", [True, False])
def test_a_process_whose_torchrun_ended_before_it_asked(listens: bool) -> None:
    """Its parent is another one from the beginning, but the store of torchrun refuses it."""
    with socket.create_server(("127.0.0.1", 0)) as store:
        address, port = store.getsockname()
        if not listens:
            store.close()
        variables = {BY_TORCHRUN: "x", STORE_OF_TORCHRUN: "True", "MASTER_ADDR": address, "MASTER_PORT": str(port)}
        command = [sys.executable, "-c", ORPHAN]
        done = subprocess.run(command, env={**os.environ, **variables}, timeout=50)
    assert done.returncode == (0 if listens else -signal.SIGTERM)


SLOW_TO_CLEAR = """
import os, sys, time
from foveate import child_processes

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(float(sys.argv[1]))

slow = Slow()
child_processes.INTERVAL = 60.0
child_processes.end_with_parent()
os.getppid = lambda: int(sys.argv[2])
"""


@pytest.mark.parametrize("lost", [True, False])
def test_a_process_that_ends_by_itself_is_watched_to_the_end(lost: bool) -> None:
    """As one whose neighbour was the first to see that the parent is gone. What is cleared last may take long."""
    environment = {**os.environ, PARENT: str(os.getpid())}
    arguments = ["100", "1"] if lost else ["0", str(os.getpid())]
    command = [sys.executable, "-c", SLOW_TO_CLEAR, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM if lost else 0, "")


def test_the_environment_of_a_child_names_this_process() -> None:
    assert child_environment({"a": "b"}) == {"a": "b", PARENT: str(os.getpid())}


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"PPid:\t{parent}\n" in path.read_text():
                found.append(int(path.parent.name))
        except OSError:  # it has ended meanwhile
            continue
    return found
