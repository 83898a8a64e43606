"""Hooks by which a watcher knows which module of a model runs."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from foveate.sight.own_models import cannot_attend
from foveate.sight.untraced import COMPILED
from foveate.sight.watcher import Watcher


def add_hooks(model: nn.Module, watcher: Watcher, stack: ExitStack, own: dict[str, nn.Module] | None) -> None:
    """Add hooks that tell the watcher which module runs: of foveate's own modules, only those that attend.

    The stack removes them when it closes.
    """
    hooked: list[nn.Module] = []
    stack.callback(_remove_hooks, hooked, watcher.hook_id)
    leave = _Leave(watcher)
    for path, module in model.named_modules() if own is None else own.items():
        name = f"{path}.".replace(COMPILED, "").removesuffix(".")
        if isinstance(module, torch.jit.ScriptModule):
            watcher.untraced.check_script(name, module)
        elif module is model or (not cannot_attend(module) if own is None else getattr(module, "attends", False)):
            hooked.append(module)
            module._forward_pre_hooks[watcher.hook_id] = _Enter(watcher, name)
            module._forward_hooks[watcher.hook_id] = leave
            module._forward_hooks_always_called[watcher.hook_id] = True


def _remove_hooks(hooked: list[nn.Module], hook_id: int) -> None:
    for module in hooked:
        for hooks in (module._forward_pre_hooks, module._forward_hooks, module._forward_hooks_always_called):
            hooks.pop(hook_id, None)


class _Hook:
    """A hook of a watcher. In a copy of the module that is made meanwhile, the hook does nothing."""

    __slots__ = ()

    def __call__(self, module: nn.Module, *_: object) -> None:
        """Return nothing: a value would replace the input or output of the module."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, ()


class _Enter(_Hook):
    __slots__ = ("_name", "_watcher")

    def __init__(self, watcher: Watcher, name: str) -> None:
        self._watcher, self._name = watcher, name

    def __call__(self, module: nn.Module, *_: object) -> None:
        self._watcher.enter(self._name, module)


class _Leave(_Hook):
    __slots__ = ("_watcher",)

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def __call__(self, module: nn.Module, *_: object) -> None:
        self._watcher.leave(module)
