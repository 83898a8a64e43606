"""Decoding several batches at once, each on its own threads.

A step of decoding consists of many small operations. Threads that share an operation wait for each other; threads with
a batch each do not."""

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention import hooks
from foveate.contracts import Generator, Hypothesis, State
from foveate.decoding.settings import Decoding, decode_up_to, longest_outputs
from foveate.special_tokens import SpecialTokens

_MOST = 4
"""The most batches at once. Each holds Python's global lock for about a quarter of its time."""


def batches_at_once(device: torch.device) -> int:
    """The fastest number of batches to decode at once on a device."""
    return min(_MOST, torch.get_num_threads()) if device.type == "cpu" else 1


def decode_all(
    model: Generator,
    batches: Sequence[dict[str, Tensor]],
    special: SpecialTokens,
    settings: Decoding,
    generator: torch.Generator | None = None,
    at_once: int = 1,
) -> Iterator[list[list[Hypothesis]]]:
    """The results of `decode` for each batch of inputs, which include `source_lengths`, as soon as they are ready.

    `at_once` batches share the CPU's threads. Sampling, a model under `look` and autocast (which is local to a thread)
    decode one batch at a time.
    """
    settings.check()
    at_once = min(at_once, len(batches))
    if at_once > 1 and not _one_by_one(batches[0], settings):
        yield from _decode_at_once(model, batches, special, settings, at_once)
    else:
        for inputs in batches:
            yield _decode(model, inputs, special, settings, generator)


def _one_by_one(inputs: dict[str, Tensor], settings: Decoding) -> bool:
    autocasts = torch.is_autocast_enabled(inputs["source_lengths"].device.type)
    return autocasts or settings.method == "sample" or hooks.interceptor is not None


@torch.inference_mode()
def _decode(
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    settings: Decoding,
    generator: torch.Generator | None = None,
    stop: Event | None = None,
) -> list[list[Hypothesis]]:
    longest = longest_outputs(model, inputs["source_lengths"], settings)
    writer = model if stop is None else _Stoppable(model, stop)
    return decode_up_to(longest, writer, inputs, special, settings, generator)


def _decode_at_once(
    model: Generator,
    batches: Sequence[dict[str, Tensor]],
    special: SpecialTokens,
    settings: Decoding,
    at_once: int,
) -> Iterator[list[list[Hypothesis]]]:
    threads, stop = torch.get_num_threads(), Event()

    def job(inputs: dict[str, Tensor]) -> list[list[Hypothesis]]:
        torch.set_num_threads(max(1, threads // at_once))
        return _decode(model, inputs, special, settings, stop=stop)

    pool = ThreadPoolExecutor(at_once)
    try:
        yield from pool.map(job, batches)
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
