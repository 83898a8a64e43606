"""`look`: records what any PyTorch model attends to while it runs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from foveate.sight.adapters import attach_all
from foveate.sight.measures import check_names
from foveate.sight.own_models import cannot_attend, own_modules
from foveate.sight.recorder import Recorder
from foveate.sight.sight import Sight
from foveate.sight.untraced import COMPILED

_HOOK_ID = -1
"""Key of the hooks of a look, which torch never uses. Registering them would double their memory."""


@contextmanager
def look(
    model: nn.Module, sites: Sequence[str] | str | None = None, keep: Sequence[str] | None = None
) -> Iterator[Sight]:
    """Record what every attention call of `model` attends to while the context is open.

    The model may be foveate's or any other: calls of foveate's `attend`, of torch's attention functions and of those
    of transformers are recorded. Weights are not computed, except for a few rows of each call, which are compared with
    the output. Outputs and gradients are the same as without a look. Compiled parts run uncompiled.

    `sites` are patterns of module paths ("decoder.*.cross"); only sites that match are recorded. `keep` names measures
    ("received", "top", ...) to compute at once; then queries and keys are not kept.

    A process can have one open look, which records what runs in its own thread. When it closes, it raises UserError if
    a module attended in a way that cannot be recorded, if nothing that attended matches `sites`, or if all attention
    was outside of a call of `model`.
    """
    sites = [sites] if isinstance(sites, str) else sites
    own = own_modules(model)
    recorder = Recorder(sites, None if keep is None else check_names(keep, ["output_error"]), own is not None)
    sight = Sight(recorder.index.sites, recorder.notes)
    with ExitStack() as stack:
        stack.enter_context(attach_all(recorder))
        if "torch._dynamo" in sys.modules:  # otherwise nothing is compiled, and importing the compiler takes a second
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        _add_hooks(model, recorder, stack, own)
        yield sight
    recorder.check(model)


def _add_hooks(model: nn.Module, recorder: Recorder, stack: ExitStack, own: dict[str, nn.Module] | None) -> None:
    """Add hooks that tell the recorder which module runs: of foveate's own modules, only those that attend."""
    hooked: list[nn.Module] = []
    stack.callback(_remove_hooks, hooked)
    leave = _Leave(recorder)
    for path, module in model.named_modules() if own is None else own.items():
        name = f"{path}.".replace(COMPILED, "").removesuffix(".")
        if isinstance(module, torch.jit.ScriptModule):
            recorder.untraced.check_script(name, module)
        elif module is model or (not cannot_attend(module) if own is None else getattr(module, "attends", False)):
            hooked.append(module)
            module._forward_pre_hooks[_HOOK_ID] = _Enter(recorder, name)
            module._forward_hooks[_HOOK_ID] = leave
            module._forward_hooks_always_called[_HOOK_ID] = True


def _remove_hooks(hooked: list[nn.Module]) -> None:
    """Remove the hooks of a look."""
    for module in hooked:
        for hooks in (module._forward_pre_hooks, module._forward_hooks, module._forward_hooks_always_called):
            hooks.pop(_HOOK_ID, None)


class _Hook:
    """A hook of a look. In a copy of the module that is made during the look, the hook does nothing."""

    __slots__ = ()

    def __call__(self, module: nn.Module, *_: object) -> None:
        """Return nothing: a value would replace the input or output of the module."""

    def __reduce__(self) -> tuple[Any, ...]:
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
