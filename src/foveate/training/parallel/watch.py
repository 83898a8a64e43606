"""Detects that another process has ended, so that none waits for it."""

import contextlib
import os
import threading
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

FOREVER = timedelta(days=365)
"""The timeout of operations that may wait long, such as for a validation."""

DONE, FAILED, GONE = 1.0, 2.0, 3.0
"""The last message of a neighbour: its training is done, it failed, or it ended without a message."""

GRACE = 5.0
"""Seconds for the main thread to notice by itself that a process is missing."""


class Watch:
    """A thread that listens to the process of the next rank, and sends a last message to the one before.

    A process that ends closes its connections. So its listener knows at once and tells its own listener, around the
    ring. The main thread gets an error from the operation that needs the other process. If it does not (some operations
    on a GPU wait for minutes, and a validation needs no other process), the thread ends this process.
    """

    def __init__(self, rank: int, size: int, on_failure: Callable[[float], None]) -> None:
        """`on_failure` is called in the thread with the last message of a neighbour that ends early."""
        self.before, self.next = (rank - 1) % size, (rank + 1) % size
        self.group = dist.new_group(backend="gloo", timeout=FOREVER)
        self.word = 0.0
        self._on_failure, self._sent, self._sending = on_failure, False, threading.Lock()
        self._failure, self._left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._listen, name="foveate-watch", daemon=True)
        self._thread.start()

    def broken(self, within: float = 0.0) -> bool:
        """Returns whether another process is known to have ended early, after a wait of `within` seconds."""
        return self._failure.wait(within)

    def leave(self, word: float) -> None:
        """Send the last message."""
        self._left.set()
        self._send(word)

    def end(self, within: float | None = None) -> None:
        """Wait, at most `within` seconds, for the neighbour's last message: no thread may listen when Python exits."""
        self._thread.join(within)

    def _send(self, word: float) -> None:
        with self._sending:
            if not self._sent:
                self._sent = True
                with contextlib.suppress(RuntimeError):  # the listener has ended
                    dist.send(torch.tensor([word]), self.before, group=self.group)

    def _listen(self) -> None:
        message = torch.tensor([GONE])
        with contextlib.suppress(RuntimeError):
            dist.recv(message, self.next, group=self.group)
        self.word = float(message)
        if self.word == DONE:
            return
        if not self._left.is_set():
            self._on_failure(self.word)
        self._failure.set()
        self._send(FAILED)
        if not self._left.wait(GRACE):
            os._exit(1)
