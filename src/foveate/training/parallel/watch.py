"""A watch over the other processes, so that none waits for one that has ended."""

import contextlib
import os
import threading
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

FOREVER = timedelta(days=365)
"""A wait that only the end of a process ends, such as for a validation."""

DONE, FAILED, GONE = 1.0, 2.0, 3.0
"""A neighbour's last word: its training is over, or ended by an error; or it ended without a word."""

GRACE = 5.0
"""Seconds in which the main thread may find out by itself that a process is missing."""


class Watch:
    """Listens, in a thread, to the process of the next rank, and leaves a last word to that of the rank before.

    A process that ends, however it ends, closes its connections. So its listener knows at once, and says so to its own
    listener, around the ring. The main thread learns of it by the error of the operation that needs the other process.
    Where it does not (some operations on a GPU wait for minutes, and a validation needs nobody) the thread ends this
    process.
    """

    def __init__(self, rank: int, size: int, noticed: Callable[[float], None]) -> None:
        """`noticed` is called, in the thread, with the last word of a neighbour that ends before its time."""
        self.before, self.next = (rank - 1) % size, (rank + 1) % size
        self.group = dist.new_group(backend="gloo", timeout=FOREVER)
        self.word = 0.0
        self._tell, self._said, self._speaking = noticed, False, threading.Lock()
        self._noticed, self._left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._listen, name="foveate-watch", daemon=True)
        self._thread.start()

    def broken(self, within: float = 0.0) -> bool:
        """Whether another process ended before its time, as far as is known after so many seconds."""
        return self._noticed.wait(within)

    def leave(self, word: float) -> None:
        """Say the last word."""
        self._left.set()
        self._say(word)

    def end(self, within: float | None = None) -> None:
        """Wait, so many seconds at most, for the neighbour's: when Python ends, no thread may still listen."""
        self._thread.join(within)

    def _say(self, word: float) -> None:
        with self._speaking:
            if not self._said:
                self._said = True
                with contextlib.suppress(RuntimeError):  # nobody listens any more
                    dist.send(torch.tensor([word]), self.before, group=self.group)

    def _listen(self) -> None:
        heard = torch.tensor([GONE])
        with contextlib.suppress(RuntimeError):
            dist.recv(heard, self.next, group=self.group)
        self.word = float(heard)
        if self.word == DONE:
            return
        if not self._left.is_set():
            self._tell(self.word)
        self._noticed.set()
        self._say(FAILED)
        if not self._left.wait(GRACE):
            os._exit(1)
