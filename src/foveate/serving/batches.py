"""Gathers the inputs of many clients into batches, and answers them in one thread."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from foveate.errors import OwnError, UserError, out_of_memory
from foveate.viewer.server.worker import Busy


@dataclass(eq=False)
class Asked:
    """Inputs of one client, which wait for their answers."""

    inputs: Sequence[Any]
    options: Any
    wanted: Callable[[], bool]
    """Whether the client is still there."""
    alone: bool
    """Whether others may not be answered with them."""
    future: Future = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    def goes_with(self, other: "Asked") -> bool:
        """Whether both can be answered together."""
        return self is other or (not (self.alone or other.alone) and self.options == other.options)


class Batcher:
    """Answers inputs with equal options together. While one batch is answered, the next one gathers."""

    def __init__(
        self, answer: Callable[[Sequence[Any], Any], Sequence[Any]], batch: int, wait: float, waiting: int
    ) -> None:
        """`answer(inputs, options)` is called in a thread of its own with some `batch` inputs, of clients that have
        waited for others for at most `wait` seconds. At most `waiting` clients wait."""
        self._answer, self._batch, self._wait, self._most_waiting = answer, batch, wait, waiting
        self._asked: deque[Asked] = deque()
        self._changed = threading.Condition()
        # A daemon thread, so that a long computation does not keep the program from exiting.
        threading.Thread(target=self._work, name="foveate-service", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Clients that wait for the model."""
        return len(self._asked)

    def submit(
        self, inputs: Sequence[Any], options: Any, wanted: Callable[[], bool] = lambda: True, alone: bool = False
    ) -> Future:
        """A future of the answers to inputs, which is cancelled if they are no longer wanted when their turn comes.

        Raises Busy if too many clients are waiting.
        """
        asked = Asked(inputs, options, wanted, alone)
        with self._changed:
            if len(self._asked) >= self._most_waiting:
                self._drop_unwanted()
            if len(self._asked) >= self._most_waiting:
                raise Busy
            self._asked.append(asked)
            self._changed.notify()
        return asked.future

    def _drop_unwanted(self) -> None:
        for asked in [one for one in self._asked if not one.wanted()]:
            self._asked.remove(asked)
            asked.future.cancel()

    def _work(self) -> None:
        while True:
            self._serve(self._next())

    def _next(self) -> list[Asked]:
        """The client that has waited longest, and those that can be answered with it."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked)
            first = self._asked[0]
            end = first.arrived + (0 if first.alone else self._wait)
            while (left := end - time.monotonic()) > 0 and self._count(self._fitting(first)) < self._batch:
                self._changed.wait(left)
            found = self._fitting(first)
            for one in found:
                self._asked.remove(one)
            return found

    def _fitting(self, first: Asked) -> list[Asked]:
        """The clients of a batch, as many as it has room for, in the order in which they came."""
        found: list[Asked] = []
        for one in self._asked:
            if one.goes_with(first) and self._count([*found, one]) <= max(self._batch, len(first.inputs)):
                found.append(one)
        return found

    @staticmethod
    def _count(asked: Sequence[Asked]) -> int:
        return sum(len(one.inputs) for one in asked)

    def _serve(self, asked: Sequence[Asked]) -> None:
        wanted = []
        for one in asked:
            if one.wanted() and one.future.set_running_or_notify_cancel():
                wanted.append(one)
            else:
                one.future.cancel()
        if not wanted:
            return
        try:
            answers = iter(self._answer([given for one in wanted for given in one.inputs], wanted[0].options))
        except BaseException as error:
            if len(wanted) == 1:
                _fail(wanted[0].future, error)
                return
            for one in wanted:  # the mistake is one's own: each is tried by itself
                self._serve_alone(one)
            return
        for one in wanted:
            one.future.set_result([next(answers) for _ in one.inputs])

    def _serve_alone(self, asked: Asked) -> None:
        try:
            asked.future.set_result([*self._answer(asked.inputs, asked.options)])
        except BaseException as error:
            _fail(asked.future, error)


def _fail(future: Future, error: BaseException) -> None:
    """Every error belongs to the client. Its traceback is left out: it holds intermediate results."""
    if isinstance(error, Exception) and out_of_memory(error):
        error = OwnError("this takes more memory than there is")
    error.__cause__ = error.__context__ = None
    future.set_exception(error.with_traceback(None) if isinstance(error, UserError) else _unexpected(error))


def _unexpected(error: BaseException) -> UserError:
    first = (str(error).splitlines() or [""])[0][:200]
    return OwnError(f"the model failed: {type(error).__name__}: {first}")
