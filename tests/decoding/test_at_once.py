"""Batches that are decoded at once give what they give one after the other."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from foveate import create, look
from foveate.decoding import Decoding, batches_at_once, decode, decode_all
from foveate.errors import UserError
from foveate.inference.cpu import optimize_for_cpu
from foveate.special_tokens import LEARNED

END = LEARNED.end

GREEDY = Decoding(method="greedy")


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with threads(2):
        yield


@pytest.fixture(scope="module")
def batches() -> list[dict[str, Tensor]]:
    torch.manual_seed(1)
    lengths = [torch.tensor([9 - step, 3]) for step in range(5)]
    return [{"source": torch.randint(4, 50, (2, int(each[0]))), "source_lengths": each} for each in lengths]


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(2)
    return create("transformer-tiny", src_vocab=50, tgt_vocab=50, width=32, encoder_layers=1, decoder_layers=2).eval()


class Watched:
    """A model that notes the threads which ask for its steps, and how many threads each of them has."""

    def __init__(self, model: Any, wait: float = 0.0, broken: bool = False) -> None:
        self.model, self.wait, self.broken = model, wait, broken
        self.threads: dict[int, int] = {}
        self.steps = 0

    def prefill(self, tokens: Tensor, **inputs: Tensor) -> Any:
        self.threads[threading.get_ident()] = torch.get_num_threads()
        logits, state = self.model.prefill(tokens, **inputs)
        return logits * (torch.nan if self.broken else 1), state

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        self.steps += 1
        time.sleep(self.wait)
        return self.model.step(tokens, state) * (torch.nan if self.broken else 1)


@pytest.mark.parametrize("settings", [Decoding(width=3, n_best=2), GREEDY])
def test_the_same_as_one_after_the_other(model: Any, batches: list[dict[str, Tensor]], settings: Decoding) -> None:
    model = optimize_for_cpu(model)
    watched = Watched(model, wait=0.01)
    found = list(decode_all(watched, batches, LEARNED, settings, at_once=2))
    with threads(1):  # as each of them has: more add up in another order, and so does a model that is not packed
        assert found == [decode(model, inputs, LEARNED, inputs["source_lengths"], settings) for inputs in batches]
    assert len(watched.threads) == 2
    assert set(watched.threads.values()) == {1}, "each has its share"
    assert torch.get_num_threads() == 2


def test_no_output_is_longer_than_the_positions_that_are_learned(endless: Any) -> None:
    """A model that never ends writes them all in each thread, and no more."""
    inputs = {"source": torch.tensor([[5, 6, END]]), "source_lengths": torch.tensor([3])}
    found = [batch[0][0] for batch in decode_all(endless, [inputs, inputs], LEARNED, GREEDY, at_once=2)]
    assert [(len(one.tokens), one.ended) for one in found] == [(7, False), (7, False)]


def test_settings_that_make_no_sense(model: Any, batches: list[dict[str, Tensor]]) -> None:
    with pytest.raises(UserError, match="one output, not n_best=2"):
        list(decode_all(model, batches, LEARNED, Decoding("greedy", n_best=2), at_once=2))


def test_what_is_left_to_one_thread(model: Any, batches: list[dict[str, Tensor]]) -> None:
    here = {threading.get_ident(): 2}
    watched = Watched(model)
    sampled = Decoding(method="sample")
    drawn = [
        list(decode_all(watched, batches, LEARNED, sampled, torch.Generator().manual_seed(3), 2)) for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    list(decode_all(watched, batches[:1], LEARNED, GREEDY, at_once=2))
    list(decode_all(watched, batches, LEARNED, GREEDY))
    with look(model) as sight:
        list(decode_all(watched, batches, LEARNED, GREEDY, at_once=2))
    assert sight.sites
    with torch.autocast("cpu", torch.bfloat16):
        list(decode_all(watched, batches, LEARNED, GREEDY, at_once=2))
    assert watched.threads == here


def test_as_many_at_once_as_there_are_threads() -> None:
    found = []
    for threads in (1, 2, 16):
        torch.set_num_threads(threads)
        found.append(batches_at_once(torch.device("cpu")))
    assert found == [1, 2, 4]
    assert batches_at_once(torch.device("cuda")) == 1


def test_nothing_to_decode(model: Any) -> None:
    assert list(decode_all(model, [], LEARNED, GREEDY)) == []


def test_an_error_ends_all(model: Any, batches: list[dict[str, Tensor]]) -> None:
    broken = Watched(model, broken=True)
    with pytest.raises(UserError, match="the model gave NaN"):
        list(decode_all(broken, batches * 20, LEARNED, GREEDY, at_once=2))
    assert torch.get_num_threads() == 2


def test_nobody_who_wants_the_rest_waits_for_it(model: Any, batches: list[dict[str, Tensor]]) -> None:
    slow = Watched(model, wait=0.01)
    answers = decode_all(slow, batches * 20, LEARNED, GREEDY, at_once=2)
    next(answers)
    answers.close()
    assert slow.steps < 200, "each of the hundred batches takes fifteen steps or more"
    time.sleep(0.1)
    taken = slow.steps
    time.sleep(0.1)
    assert slow.steps == taken
    assert torch.get_num_threads() == 2
