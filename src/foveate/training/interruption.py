"""Ctrl-C and SIGTERM: the current step is finished and saved before training ends."""

import os
import signal
import threading
from types import FrameType, TracebackType

from foveate.errors import UserError
from foveate.training.parallel import Processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(UserError):
    """The user or the system stopped the training. The message says how to resume."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        """`number` is that of the signal, which decides the exit status, as for any program."""
        super().__init__(message)
        self.status = 128 + number


class Interruption:
    """A context in which the first signal only sets `asked`. A second one has its usual effect.

    A signal that was ignored before stays ignored, such as Ctrl-C in a background job of a shell. Of several processes
    that get the signal, the main one prints a line, unless another process has failed.
    """

    def __init__(self, processes: Processes | None = None) -> None:
        self.asked = 0
        """The number of the signal that came, else 0."""
        self._processes = processes or Processes()
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():  # only the main thread can handle signals
            handled = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
            self._previous = {number: signal.signal(number, self._note) for number in handled}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._restore()

    def over(self) -> None:
        """Restore the usual effect of signals: everything is saved."""
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        self._restore()
        if not self._processes.main or self._processes.broken:
            return
        # Not print(): a signal handler may interrupt another print(), which is an error.
        os.write(2, b"\nstopping after this step and a checkpoint; press again to stop at once\n")

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._previous = {}
