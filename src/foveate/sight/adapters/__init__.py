"""Adapters: each records one way to attend while a look is open."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from foveate.sight.adapters import flash, foveate, transformers
from foveate.sight.adapters.functions import TorchFunctions
from foveate.sight.call_adapter import CallAdapter
from foveate.sight.recorder import Recorder


@contextmanager
def attach_all(recorder: Recorder) -> Iterator[None]:
    """Attach all adapters while the context is open.

    Torch's functions are left as they are while a model of foveate's own is looked at, since receiving each call of one
    takes time.
    """
    adapter = CallAdapter()
    with ExitStack() as stack:
        stack.enter_context(foveate.attach(recorder))
        stack.enter_context(transformers.attach(recorder, adapter))
        stack.enter_context(flash.attach(recorder, adapter))
        if not recorder.own:
            stack.enter_context(TorchFunctions(recorder, adapter))
        yield
