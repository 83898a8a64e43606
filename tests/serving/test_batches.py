"""Inputs of many clients are answered together, each gets its own answer, and a mistake is one client's."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from foveate.errors import OwnError, UserError
from foveate.serving.batches import Batcher
from foveate.viewer.server.worker import Busy


class Model:
    """Doubles numbers, in batches that it notes; waits for `go` before the first."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[Any], Any]] = []
        self.go, self.began = threading.Event(), threading.Event()

    def __call__(self, inputs: Sequence[Any], options: Any) -> list[Any]:
        self.began.set()
        assert self.go.wait(10)
        self.batches.append(([*inputs], options))
        if "stop" in inputs:
            raise KeyError("a fault of the model's")
        if "bad" in inputs:
            raise UserError("bad is no number")
        return [2 * one for one in inputs]


@pytest.fixture
def model() -> Model:
    return Model()


def busy(model: Model, batch: int = 8, wait: float = 0.0, waiting: int = 100) -> Batcher:
    """A batcher whose model is at work on a first input."""
    made = Batcher(model, batch, wait, waiting)
    made.submit([0], "first")
    assert model.began.wait(10)
    return made


def test_those_that_wait_meanwhile_are_answered_together(model: Model) -> None:
    made = busy(model)
    futures = [made.submit([number, 10 * number], "same") for number in range(1, 4)]
    other = made.submit([7], "other")
    model.go.set()
    assert [one.result(10) for one in futures] == [[2, 20], [4, 40], [6, 60]]
    assert other.result(10) == [14]
    assert model.batches == [([0], "first"), ([1, 10, 2, 20, 3, 30], "same"), ([7], "other")]


def test_a_batch_has_no_more_than_it_may(model: Model) -> None:
    made = busy(model, batch=4)
    futures = [made.submit([1] * count, "same") for count in (3, 2, 1, 9)]
    model.go.set()
    for one in futures:
        one.result(10)
    assert [len(inputs) for inputs, _ in model.batches] == [1, 4, 2, 9]  # the first and the third; a large one alone


def test_what_is_drawn_is_answered_alone(model: Model) -> None:
    made = busy(model)
    futures = [made.submit([number], "same", alone=True) for number in (1, 2)]
    model.go.set()
    assert [one.result(10) for one in futures] == [[2], [4]]
    assert [len(inputs) for inputs, _ in model.batches] == [1, 1, 1]


@pytest.mark.parametrize(("word", "kind", "text"), [("bad", UserError, "bad is no"), ("stop", OwnError, "KeyError")])
def test_a_mistake_costs_no_other_its_answer(model: Model, word: str, kind: type[Exception], text: str) -> None:
    made = busy(model)
    first, wrong, last = (made.submit([one], "same") for one in (1, word, 3))
    model.go.set()
    assert (first.result(10), last.result(10)) == ([2], [6])
    with pytest.raises(kind, match=text):
        wrong.result(10)


def test_the_first_waits_for_others_no_longer_than_it_may(model: Model) -> None:
    model.go.set()
    made, begin = Batcher(model, 3, 0.3, 100), time.monotonic()
    assert made.submit([1], "same").result(10) == [2]
    assert time.monotonic() - begin >= 0.3
    futures = [made.submit([number], "same") for number in (1, 2, 3)]  # a full batch waits for nobody
    assert [one.result(10) for one in futures] == [[2], [4], [6]]
    assert [len(inputs) for inputs, _ in model.batches][-1] == 3


def test_those_who_left_are_not_answered(model: Model) -> None:
    made = busy(model)
    gone, here = made.submit([1], "same", lambda: False), made.submit([2], "same")
    model.go.set()
    assert here.result(10) == [4]
    with pytest.raises(CancelledError):
        gone.result(10)
    assert [inputs for inputs, _ in model.batches] == [[0], [2]]


def test_too_many_are_refused_but_for_the_places_of_those_who_left(model: Model) -> None:
    here = True
    made = busy(model, waiting=2)
    futures: list[Future] = [made.submit([number], "same", lambda: here) for number in (1, 2)]
    with pytest.raises(Busy):
        made.submit([3], "same")
    here = False
    kept = made.submit([4], "same")
    assert made.waiting == 1
    assert all(one.cancelled() for one in futures)
    model.go.set()
    assert kept.result(10) == [8]
