"""Looking at any model while it runs, and asking afterwards where it looked."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from foveate.sight.adapters import attach_all
from foveate.sight.measures import check_names
from foveate.sight.recorder import Recorder
from foveate.sight.sight import Sight
from foveate.sight.untraced import COMPILED

_WATCHED = -1
"""The number of a look's hooks, as torch gives none: a number and a handle for each would be half of what they hold."""


@contextmanager
def look(
    model: nn.Module, sites: Sequence[str] | str | None = None, keep: Sequence[str] | None = None
) -> Iterator[Sight]:
    """Note what every attention call of `model` looks at while the context is open.

    Of each map only a few rows are computed, to compare them with the output. The model may be foveate's or anybody's:
    what attends by foveate's `attend`, by torch's functions for attention or by those of transformers is seen. Outputs
    and gradients are those of a run that is not looked at; compiled parts run uncompiled meanwhile.

    `sites` are patterns of module paths ("decoder.*.cross") of which alone something is kept. `keep` names measures
    ("received", "top", ...) that are computed at once, so that queries and keys need not be kept at all.

    One look at a time is open in a process, and sees what runs in its own thread. Raises UserError when it closes if a
    module attended in a way that cannot be seen, or if all that attended was none of `sites`, or in no call of `model`.
    """
    sites = [sites] if isinstance(sites, str) else sites
    recorder = Recorder(sites, None if keep is None else check_names(keep, ["output_error"]))
    sight = Sight(recorder.maps.sites, recorder.notes)
    with ExitStack() as stack:
        stack.enter_context(attach_all(recorder))
        if "torch._dynamo" in sys.modules:  # else nothing is compiled, and to load the compiler takes a second
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        _watch(model, recorder, stack)
        yield sight
    recorder.check(model)


def _watch(model: nn.Module, recorder: Recorder, stack: ExitStack) -> None:
    """Tell the recorder which module runs."""
    watched: list[nn.Module] = []
    stack.callback(_unwatch, watched)
    leave = _Leave(recorder)
    for path, module in model.named_modules():
        name = f"{path}.".replace(COMPILED, "").removesuffix(".")
        if isinstance(module, torch.jit.ScriptModule):
            recorder.hidden.script(name, module)
        elif module is model or not _cannot_attend(module):
            watched.append(module)
            module._forward_pre_hooks[_WATCHED] = _Enter(recorder, name)
            module._forward_hooks[_WATCHED] = leave
            module._forward_hooks_always_called[_WATCHED] = True


def _cannot_attend(module: nn.Module) -> bool:
    """Whether it is one of torch's layers without parts: linear, dropout, normalisation, ..."""
    own = type(module).__module__.startswith("torch.nn.modules.") and "forward" not in vars(module)
    return own and next(module.children(), None) is None


def _unwatch(watched: list[nn.Module]) -> None:
    """Take the hooks of a look away."""
    for module in watched:
        for hooks in (module._forward_pre_hooks, module._forward_hooks, module._forward_hooks_always_called):
            hooks.pop(_WATCHED, None)


class _Hook:
    """A hook of a look; a copy of a module that is made meanwhile has one that does nothing."""

    __slots__ = ()

    def __call__(self, module: nn.Module, *_: object) -> None:
        """Nothing: what a hook returns would replace what the module is given, or gives."""

    def __reduce__(self) -> tuple:
        return _Hook, ()


class _Enter(_Hook):
    __slots__ = ("_name", "_recorder")

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self._name = recorder, name

    def __call__(self, module: nn.Module, *_: object) -> None:
        self._recorder.enter(self._name, module)


class _Leave(_Hook):
    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self, module: nn.Module, *_: object) -> None:
        self._recorder.leave(module)
