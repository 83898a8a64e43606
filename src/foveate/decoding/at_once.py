"""Decoding several batches at once, each on its own threads.

A step of decoding consists of many small operations. Threads that share an operation wait for each other; threads with
a batch each do not."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from itertools import chain, islice
from threading import Event
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention import hooks
from foveate.contracts import Generator, Hypothesis, State
from foveate.decoding.settings import Decoding, decode_up_to, longest_outputs
from foveate.decoding.token_rules import TokenRules
from foveate.special_tokens import SpecialTokens

_MOST = 4
"""The most batches at once. Each holds Python's global lock for about a quarter of its time."""


Longest: TypeAlias = Callable[[dict[str, Tensor]], Int[Tensor, "B"]]
"""The greatest number of tokens of each output for the inputs of a batch."""


def batches_at_once(device: torch.device) -> int:
    """The fastest number of batches to decode at once on a device."""
    return min(_MOST, torch.get_num_threads()) if device.type == "cpu" else 1


def decode_all(
    model: Generator,
    batches: Iterable[dict[str, Tensor]],
    special: SpecialTokens,
    settings: Decoding,
    generator: torch.Generator | None = None,
    at_once: int = 1,
    longest: Longest | None = None,
    rules: TokenRules | None = None,
) -> Iterator[list[list[Hypothesis]]]:
    """The results of `decode` for each batch of inputs, as soon as they are ready; batches are asked for one by one.

    `longest` limits the outputs; without it, the inputs include `source_lengths`, by which the settings do.
    `at_once` batches share the CPU's threads. Sampling, a model under `look` and autocast (which is local to a thread)
    decode one batch at a time.
    """
    settings.check()
    limits = longest or (lambda inputs: longest_outputs(model, inputs["source_lengths"], settings))

    @torch.inference_mode()
    def decode(inputs: dict[str, Tensor], stop: Event | None = None) -> list[list[Hypothesis]]:
        writer: Any = model if stop is None else _Stoppable(model, stop)
        return decode_up_to(limits(inputs), writer, inputs, special, settings, generator, rules)

    coming = iter(batches)
    first = list(islice(coming, at_once))
    if len(first) > 1 and not _one_by_one(first[0], settings):
        yield from _decode_at_once(decode, chain(first, coming), len(first))
    else:
        yield from map(decode, chain(first, coming))


def _one_by_one(inputs: dict[str, Tensor], settings: Decoding) -> bool:
    autocasts = torch.is_autocast_enabled(next(iter(inputs.values())).device.type)
    return autocasts or settings.draws or hooks.interceptor is not None


def _decode_at_once(
    decode: Callable[[dict[str, Tensor], Event], list[list[Hypothesis]]],
    batches: Iterable[dict[str, Tensor]],
    at_once: int,
) -> Iterator[list[list[Hypothesis]]]:
    threads, stop = torch.get_num_threads(), Event()

    def job(inputs: dict[str, Tensor]) -> list[list[Hypothesis]]:
        torch.set_num_threads(max(1, threads // at_once))
        return decode(inputs, stop)

    pool = ThreadPoolExecutor(at_once)
    running: deque[Future[list[list[Hypothesis]]]] = deque()
    try:
        for inputs in batches:
            running.append(pool.submit(job, inputs))
            if len(running) > at_once:  # one waits, so that no thread has to
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        # After an error, an interruption or an abandoned generator, do not wait for the remaining batches.
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        torch.set_num_threads(threads)  # for later threads


class _Stoppable:
    """A model whose steps raise CancelledError after the event."""

    def __init__(self, model: Generator, stop: Event) -> None:
        self._model, self._stop = model, stop

    def prefill(self, tokens: Int[Tensor, "R T"], **inputs: Tensor) -> tuple[Float[Tensor, "R N"], State]:
        return self._model.prefill(tokens, **inputs)

    def step(self, tokens: Int[Tensor, "R"], state: State) -> Float[Tensor, "R N"]:
        if self._stop.is_set():
            raise CancelledError
        return self._model.step(tokens, state)
