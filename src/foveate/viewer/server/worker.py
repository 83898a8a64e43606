"""One thread that runs a model and computes measures, one task after the other."""

import queue
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from foveate.errors import UserError


class Busy(Exception):
    """Too many tasks are waiting."""


class Worker:
    """Runs tasks in one thread: a look records only what runs in the thread that opened it."""

    def __init__(self, waiting: int) -> None:
        self._tasks: queue.Queue[tuple[Future, Callable[[], Any]]] = queue.Queue(waiting)
        self.busy = False
        """Whether a task is running."""
        # A daemon thread, so that a long computation does not keep the program from exiting.
        threading.Thread(target=self._work, name="foveate-explorer", daemon=True).start()

    def submit(self, task: Callable[[], Any]) -> Future:
        """Queue a task and return a future. Raises Busy if too many tasks are waiting."""
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
            except BaseException as error:  # every error belongs to the request
                if not isinstance(error, UserError):
                    traceback.print_exc()
                error.__cause__ = error.__context__ = None  # the traceback holds intermediate results
                future.set_exception(error.with_traceback(None))
            self.busy = False
            del future, task  # do not keep results until the next task
