"""Ctrl-C and a polite kill: the step in hand is finished and saved, then training ends with a way to go on."""

import os
import signal
import threading
from types import FrameType, TracebackType

from foveate.errors import UserError
from foveate.training.parallel import Processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(UserError):
    """The user, or the system, stopped the training; its message says how to resume."""


class Interruption:
    """While it is entered, the first signal only sets `asked`; a second one does what it would have done without.

    A signal that was ignored before, as a shell makes a job in the background ignore Ctrl-C, stays so.

    Each of several processes gets the signals by itself; the main one speaks, unless another has ended before its time
    and this one is about to be told why.
    """

    def __init__(self, processes: Processes | None = None) -> None:
        self.asked = False
        self._processes = processes or Processes()
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():  # Python lets no other thread handle signals
            heard = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
            self._previous = {number: signal.signal(number, self._note) for number in heard}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._restore()

    def over(self) -> None:
        """From now on the first signal does what it would have done without: all is saved."""
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()
        if not self._processes.main or self._processes.broken:
            return
        # print() could be in the middle of a line of its own, which it does not allow
        os.write(2, b"\nstopping after this step and a checkpoint; once more to stop at once\n")

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._previous = {}
