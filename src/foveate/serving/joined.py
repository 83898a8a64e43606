"""Answers to many clients that are written together, a token of each at a time: a request joins those that are being
written at the next step, and leaves when its own are complete."""

from collections.abc import Callable, Sequence
from typing import Any

from foveate.decoding import ContinuousBatch, Pending, Writing
from foveate.serving.asked import Asked

Begin = Callable[[Sequence[Any], Any], Pending | None]
"""What is to be written for inputs with these options; None where their answers are not written so."""


class JoinedAnswers:
    """Requests whose answers are being written."""

    def __init__(self, begin: Begin, most: int, on_join: Callable[[int], object] = lambda count: None) -> None:
        """At most `most` answers are written together, or those of one request. `on_join` is called with the number of
        answers that are being written whenever a request has joined."""
        self._begin, self._most, self._on_join = begin, most, on_join
        self._batches: dict[int, ContinuousBatch] = {}
        """By the id of the model, which the batch keeps: one for each precision that is asked for."""
        self._open: dict[Writing, tuple[Asked, Pending]] = {}

    @property
    def count(self) -> int:
        """Answers that are being written."""
        return sum(batch.rows for batch in self._batches.values())

    def has_room(self, asked: Asked) -> bool:
        """Whether a request may join now."""
        return not self._open or self.count + len(asked.inputs) <= self._most

    def begin(self, asked: Asked) -> Pending | None:
        """What is to be written for a request; None where its answers are not written so, or where there is a mistake,
        which the other way to answer tells."""
        try:
            return self._begin(asked.inputs, asked.options)
        except Exception:
            return None

    def join(self, asked: Asked, pending: Pending) -> None:
        """Begin to write the answers of a request."""
        if not asked.start():
            return
        batch = self._batches.get(id(pending.model)) or ContinuousBatch(pending.model)
        self._batches[id(pending.model)] = batch
        self._open[pending.writing] = asked, pending
        try:
            batch.join(pending.writing)
        except BaseException as error:
            self._fail([pending.writing], error)
        else:
            self._on_join(self.count)
            self._finish([] if pending.writing.rows else [pending.writing])
        self._drop_empty()

    def step(self) -> None:
        """Write one more token of each answer. Those of clients that left are dropped."""
        for batch in self._batches.values():
            for writing in [one for one in batch.writings if not self._open[one][0].wanted()]:
                batch.leave(writing)
                self._open.pop(writing)[0].drop()
            try:
                self._finish(batch.step() if batch.writings else [])
            except BaseException as error:
                self._fail(batch.writings, error)
                batch.writings = []
        self._drop_empty()

    def _drop_empty(self) -> None:
        self._batches = {name: batch for name, batch in self._batches.items() if batch.writings}

    def _finish(self, writings: Sequence[Writing]) -> None:
        for writing in writings:
            asked, pending = self._open.pop(writing)
            try:
                if writing.error is not None:
                    raise writing.error
                answers = pending.finish()
            except BaseException as error:
                asked.fail(error)
            else:
                asked.future.set_result(answers)

    def _fail(self, writings: Sequence[Writing], error: BaseException) -> None:
        for writing in writings:
            self._open.pop(writing)[0].fail(error)
