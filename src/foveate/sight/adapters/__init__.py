"""Adapters: each records one way to attend while a look is open."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch import nn

from foveate.sight.adapters import flash, foveate, transformers
from foveate.sight.adapters.functions import TorchFunctions
from foveate.sight.call_adapter import CallAdapter
from foveate.sight.recorder import Recorder


@contextmanager
def attach_all(recorder: Recorder, model: nn.Module) -> Iterator[None]:
    """Attach all adapters while the context is open.

    A model that consists of foveate's modules and torch's leaf layers attends by `attend` alone. Torch's functions are
    left as they are then, since receiving each call of one takes time.
    """
    adapter = CallAdapter()
    with ExitStack() as stack:
        stack.enter_context(foveate.attach(recorder))
        stack.enter_context(transformers.attach(recorder, adapter))
        stack.enter_context(flash.attach(recorder, adapter))
        if not all(map(_attends_by_attend, model.modules())):
            stack.enter_context(TorchFunctions(recorder, adapter))
        yield


def cannot_attend(module: nn.Module) -> bool:
    """Whether a module is a leaf layer of torch: linear, dropout, normalisation, ..."""
    own = type(module).__module__.startswith("torch.nn.modules.") and "forward" not in vars(module)
    return own and next(module.children(), None) is None


def _attends_by_attend(module: nn.Module) -> bool:
    """Whether a module can attend by foveate's `attend` alone: no hook or method was added to it from outside."""
    if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
        return False
    return type(module).__module__.startswith("foveate.") or type(module) in CONTAINERS or cannot_attend(module)


CONTAINERS = {nn.Sequential, nn.ModuleList, nn.ModuleDict}
"""Modules of torch that only hold or call others."""
