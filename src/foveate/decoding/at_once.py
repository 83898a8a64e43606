"""Several batches decoded at once, each on threads of its own.

A step of decoding is many small operations. Threads that share each of them wait for each other every time; threads
that have a batch of their own do not.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention import hooks
from foveate.contracts import Hypothesis, State, StepDecoder
from foveate.decoding.settings import Decoding, decode_up_to, longest_outputs

_MOST = 4
"""A batch keeps Python, which serves one thread at a time, busy for about a quarter of its time."""


def batches_at_once(device: torch.device) -> int:
    """How many batches a device decodes at once in the least time."""
    return min(_MOST, torch.get_num_threads()) if device.type == "cpu" else 1


def decode_all(
    model: StepDecoder,
    batches: Sequence[dict[str, Tensor]],
    settings: Decoding,
    generator: torch.Generator | None = None,
    at_once: int = 1,
) -> Iterator[list[list[Hypothesis]]]:
    """What `decode` gives for batch after batch of inputs, which have `source_lengths`; each once it is there.

    `at_once` batches share the CPU's threads. One after the other come random draws, what is looked at, and what
    autocast rounds, which knows its own thread only.
    """
    settings.check()
    at_once = min(at_once, len(batches))
    if at_once > 1 and not _one_by_one(batches[0], settings):
        yield from _decode_at_once(model, batches, settings, at_once)
    else:
        for inputs in batches:
            yield _decode(model, inputs, settings, generator)


def _one_by_one(inputs: dict[str, Tensor], settings: Decoding) -> bool:
    autocasts = torch.is_autocast_enabled(inputs["source_lengths"].device.type)
    return autocasts or settings.method == "sample" or hooks.interceptor is not None


@torch.inference_mode()
def _decode(
    model: StepDecoder,
    inputs: dict[str, Tensor],
    settings: Decoding,
    generator: torch.Generator | None = None,
    stop: Event | None = None,
) -> list[list[Hypothesis]]:
    longest = longest_outputs(model, inputs["source_lengths"], settings)
    return decode_up_to(longest, model if stop is None else _Stoppable(model, stop), inputs, settings, generator)


def _decode_at_once(
    model: StepDecoder, batches: Sequence[dict[str, Tensor]], settings: Decoding, at_once: int
) -> Iterator[list[list[Hypothesis]]]:
    threads, stop = torch.get_num_threads(), Event()

    def job(inputs: dict[str, Tensor]) -> list[list[Hypothesis]]:
        torch.set_num_threads(max(1, threads // at_once))
        return _decode(model, inputs, settings, stop=stop)

    pool = ThreadPoolExecutor(at_once)
    try:
        yield from pool.map(job, batches)
    finally:
        # An error, an interruption, or nobody who wants the rest: nobody waits for it either.
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        torch.set_num_threads(threads)  # for the threads that are still to come


class _Stoppable:
    """A model whose steps end once the event has come."""

    def __init__(self, model: StepDecoder, stop: Event) -> None:
        self.start, self._step, self._stop = model.start, model.step, stop

    def step(self, tokens: Int[Tensor, "R"], state: State) -> Float[Tensor, "R N"]:
        if self._stop.is_set():
            raise CancelledError
        return self._step(tokens, state)
