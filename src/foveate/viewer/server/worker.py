"""One thread that runs models and measures what they looked at, one thing after the other."""

import queue
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from foveate.errors import UserError


class Busy(Exception):
    """So much is waiting that no more is taken."""


class Worker:
    """Does what it is given in one thread of its own: a look sees only what runs in the thread that opened it."""

    def __init__(self, waiting: int) -> None:
        self._tasks: queue.Queue[tuple[Future, Callable[[], Any]]] = queue.Queue(waiting)
        self.busy = False
        """Whether something is being done."""
        # A daemon, so that a long computation does not keep the program from ending.
        threading.Thread(target=self._work, name="foveate-explorer", daemon=True).start()

    def submit(self, task: Callable[[], Any]) -> Future:
        """Have something done; its result comes as a future. Raises Busy where too much is waiting already."""
        future: Future = Future()
        try:
            self._tasks.put_nowait((future, task))
        except queue.Full:
            raise Busy from None
        return future

    def _work(self) -> None:
        while True:
            future, task = self._tasks.get()
            if not future.set_running_or_notify_cancel():
                continue
            self.busy = True
            try:
                future.set_result(task())
            except BaseException as error:  # whatever happened belongs to who asked
                if not isinstance(error, UserError):
                    traceback.print_exc()
                error.__cause__ = error.__context__ = None  # the calls where it happened still hold what they computed
                future.set_exception(error.with_traceback(None))
            self.busy = False
            del future, task  # what was computed shall not stay until the next task comes
