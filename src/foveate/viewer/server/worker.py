"""One thread that runs a model and computes measures, one task after the other."""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch.nn.modules.module import register_module_forward_pre_hook

from foveate.errors import UserError


class Busy(Exception):
    """Too many tasks are waiting."""


class Unwanted(Exception):
    """Nobody waits for the result of a task any more."""


class QueuedTask(NamedTuple):
    """What is to be run, and whether somebody still waits for it."""

    future: Future
    run: Callable[[], Any]
    wanted: Callable[[], bool]


class Worker:
    """Runs tasks in one thread: a look records only what runs in the thread that opened it."""

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting
        self._tasks: deque[QueuedTask] = deque()
        self._changed = threading.Condition()
        self.busy = False
        """Whether a task is running."""
        # A daemon thread, so that a long computation does not keep the program from exiting.
        threading.Thread(target=self._work, name="foveate-explorer", daemon=True).start()

    def submit(self, task: Callable[[], Any], wanted: Callable[[], bool] = lambda: True) -> Future:
        """Queue a task and return a future. Raises Busy if too many tasks are waiting.

        A task that is no longer `wanted` is not begun, and a model that it runs stops before its next module. Its
        future is cancelled, or raises Unwanted.
        """
        found = QueuedTask(Future(), task, wanted)
        with self._changed:
            if len(self._tasks) >= self._waiting:
                self._drop_unwanted()
            if len(self._tasks) >= self._waiting:
                raise Busy
            self._tasks.append(found)
            self._changed.notify()
        return found.future

    def _drop_unwanted(self) -> None:
        for task in [task for task in self._tasks if not task.wanted()]:
            self._tasks.remove(task)
            task.future.cancel()

    def _next(self) -> QueuedTask:
        with self._changed:
            self._changed.wait_for(lambda: self._tasks)
            return self._tasks.popleft()

    def _work(self) -> None:
        while True:
            self._run(self._next())  # which keeps no result until the next task

    def _run(self, task: QueuedTask) -> None:
        if not task.wanted():
            task.future.cancel()
            return
        self.busy = True
        try:
            with _stopping(task.wanted):
                task.future.set_result(task.run())
        except BaseException as error:  # every error belongs to the request
            if not isinstance(error, UserError | Unwanted):
                traceback.print_exc()
            error.__cause__ = error.__context__ = None  # the traceback holds intermediate results
            task.future.set_exception(error.with_traceback(None))
        self.busy = False


@contextmanager
def _stopping(wanted: Callable[[], bool]) -> Iterator[None]:
    """Raise Unwanted in this thread before the next module is run, as soon as a task is no longer wanted."""
    thread = threading.get_ident()

    def check(*_: object) -> None:
        if threading.get_ident() == thread and not wanted():
            raise Unwanted

    hook = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        hook.remove()
