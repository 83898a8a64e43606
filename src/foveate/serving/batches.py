"""Gathers the inputs of many clients into batches, and answers them in one thread."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from foveate.serving.asked import Asked
from foveate.serving.joined import JoinedAnswers
from foveate.viewer.server.worker import Busy


class Batcher:
    """Answers inputs with equal options together. While one batch is answered, the next one gathers; what is written
    token by token joins what is being written."""

    def __init__(
        self,
        answer: Callable[[Sequence[Any], Any], Sequence[Any]],
        batch: int,
        wait: float,
        waiting: int,
        joined: JoinedAnswers | None = None,
    ) -> None:
        """`answer(inputs, options)` is called in a thread of its own with some `batch` inputs, of clients that have
        waited for others for at most `wait` seconds; `joined` are the answers that are not given so. At most `waiting`
        clients wait."""
        self._answer, self._batch, self._wait, self._most_waiting = answer, batch, wait, waiting
        self._joined = joined or JoinedAnswers(lambda inputs, options: None, batch)
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
            asked.drop()

    def _work(self) -> None:
        while True:
            while (first := self._first()) is not None and self._joined.has_room(first):
                pending = self._joined.begin(first)
                if pending is None:
                    self._serve(self._next())
                elif self._take(first):
                    self._joined.join(first, pending)
            self._joined.step()

    def _first(self) -> Asked | None:
        """The client that has waited longest; None for nobody while answers are being written."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._joined.count)
            return self._asked[0] if self._asked else None

    def _take(self, asked: Asked) -> bool:
        """Take a client out of those that wait, unless it has left meanwhile."""
        with self._changed:
            if asked in self._asked:
                self._asked.remove(asked)
                return True
            return False

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
        wanted = [one for one in asked if one.start()]
        if not wanted:
            return
        try:
            answers = iter(self._answer([given for one in wanted for given in one.inputs], wanted[0].options))
        except BaseException as error:
            if len(wanted) == 1:
                wanted[0].fail(error)
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
            asked.fail(error)
