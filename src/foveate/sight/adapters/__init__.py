"""Adapters: each reports one way to attend to a watcher, and may run a changed call instead."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from foveate.sight.adapters import flash, foveate, transformers
from foveate.sight.adapters.functions import TorchFunctions
from foveate.sight.call_adapter import CallAdapter
from foveate.sight.watcher import Watcher


@contextmanager
def attach_all(watcher: Watcher) -> Iterator[None]:
    """Attach all adapters while the context is open.

    Torch's functions are left as they are while a model of foveate's own is watched, since receiving each call of one
    takes time.
    """
    adapter = CallAdapter()
    with ExitStack() as stack:
        stack.enter_context(foveate.attach(watcher))
        stack.enter_context(transformers.attach(watcher, adapter))
        stack.enter_context(flash.attach(watcher, adapter))
        if not watcher.own:
            stack.enter_context(TorchFunctions(watcher, adapter))
        yield
