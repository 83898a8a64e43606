"""What a look and a change have in common: they follow which module of a model runs, and what attends there."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import ClassVar

import torch
from torch import Tensor, nn

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.attention.kernels import Kernel, choose
from foveate.errors import UserError
from foveate.sight.given_weights import MadeProduct
from foveate.sight.untraced import MAX_NAMED, Untraced

MakeCall = Callable[[], Call]

Running = tuple[str, nn.Module]
"""The path of a module that runs, and the module."""

opened: dict[str, "Watcher"] = {}
"""What is open in this process: a "look", a "change", or both."""


@contextmanager
def only_one(kind: str, watcher: "Watcher") -> Iterator[None]:
    """Note what is open. Raises UserError where it is already, or a look that would not see what a change makes."""
    if kind in opened:
        raise UserError(f"another {kind} is open, here or in another thread: close it first, there is one at a time")
    if "look" in opened:
        raise UserError("a look is open, which cannot see what is changed later: open the change before the look")
    opened[kind] = watcher
    try:
        yield
    finally:
        del opened[kind]


def is_watched(model: nn.Module) -> bool:
    """Whether a look or a change of a model is open, which a copy laid out for the CPU would not see."""
    numbers = {watcher.hook_id for watcher in opened.values()}
    return bool(numbers) and any(not numbers.isdisjoint(part._forward_pre_hooks) for part in model.modules())


class Watcher:
    """The running modules of a model. Adapters report the attention calls of other libraries to it."""

    hook_id: ClassVar[int]
    """Key of its hooks in a module, negative: torch never uses such keys, and registering would double their memory."""

    def __init__(self, sites: Sequence[str] | None = None, own: bool = False) -> None:
        self.untraced = Untraced()
        self.notes: list[str] = []
        """How the run of the model differs from one that is not watched, if it does."""
        self.own = own
        """Whether the model consists of foveate's modules alone (see `own_models`)."""
        self._sites = sites
        self._running: list[Running] = []
        self._outermost: set[str] = set()
        """Modules in no other one that ran since the model last began."""
        self._thread = threading.get_ident()
        self._in_call = False
        self._unselected: set[str] = set()
        """Modules that attended and are not selected."""
        self._outside = False
        """Whether there was attention while no module of the model ran."""
        self.keeps_graph = False
        """Whether it needs outputs as parts of the model's graph."""
        self.made: Call | None = None
        """The call that ran in place of the model's last one, if it was changed."""

    @property
    def running(self) -> list[Running]:
        """The modules that run, from the outermost one."""
        return [*self._running]

    @property
    def watching(self) -> bool:
        """Whether an attention call counts now: the model runs, and the call is not part of another one."""
        return bool(self._running) and self._may_watch

    @property
    def _may_watch(self) -> bool:
        repeated = torch._C._current_graph_task_id() != -1  # a checkpointed part runs again in the backward pass
        return not self._in_call and not repeated and threading.get_ident() == self._thread

    def skip(self) -> None:
        """Note an attention call that does not count."""
        self._outside |= not self._running and self._may_watch

    def enter(self, name: str, module: nn.Module) -> None:
        """Note that a module begins to run."""
        kind = type(module).__name__
        if threading.get_ident() != self._thread:
            if torch._C._current_graph_task_id() == -1:  # a backward pass runs in other threads
                self.untraced.add(name, kind, "thread")
            return
        if not self._running:
            self._enter_outermost(name)
        self._running.append((name, module))
        self.untraced.enter(name, kind)

    def _enter_outermost(self, name: str) -> None:
        """Layers that a model calls one after the other outside of its `forward`, as in a step of writing, run
        together, until one of them begins again. A run of the whole model (whose name is empty) is over with it."""
        if not name or self._outermost <= {""} or name in self._outermost:
            self._outermost.clear()
            self.begin_run()
        self._outermost.add(name)

    def leave(self, module: nn.Module) -> None:
        """Note that a module has ended or failed, and with it all modules that began after it.

        A module that did not begin is ignored: a hook before that of the watcher failed.
        """
        if threading.get_ident() != self._thread:
            return
        began = [place for place, (_, running) in enumerate(self._running) if running is module]
        for _ in self._running[began[-1] :] if began else ():
            self._running.pop()
            self.untraced.leave()
        if not self._running:
            self.end_run()

    def begin_run(self) -> None:
        """The model begins to run."""

    def end_run(self) -> None:
        """The model has run."""

    @contextmanager
    def inside_call(self) -> Iterator[None]:
        """Do not count attention calls that are part of the running one."""
        self._in_call = True
        try:
            yield
        finally:
            self._in_call = False

    def is_selected(self, name: str) -> bool:
        """Returns whether its `sites` select a module."""
        return self._sites is None or any(fnmatchcase(name, pattern) for pattern in self._sites)

    def note_fast_path(self) -> None:
        """Note that the running module would otherwise have used torch's native Transformer code."""
        name, module = self._running[-1]
        if not self.notes and not module.training and getattr(module, "batch_first", False):
            self.notes.append(
                f"{name or 'the model'} and similar modules ran without torch's native fast path, where nothing can "
                "be seen; outputs agree up to rounding, except at padding"
            )

    def change(self, make: MakeCall, place: Running | None = None) -> Attended | None:
        """What a module, by default the running one, gets in place of its own call; None: its own call runs."""
        return None

    def record(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None) -> None:
        """Take note of a call of the running module, and of what it gave."""
        raise NotImplementedError

    def record_weights(self, place: Running, product: MadeProduct) -> None:
        """Take note of weights that a module made itself, multiplied with what it reads."""
        raise NotImplementedError

    def check(self, model: nn.Module, any_found: bool) -> None:
        """Raise UserError if a selected module attended in a way that could not be followed, or none attended."""
        self.untraced.check(model, self.is_selected, any_found)
        if any_found:
            return
        if self._unselected:
            more = ", ..." if len(self._unselected) > MAX_NAMED else ""
            names = ", ".join(sorted(self._unselected)[:MAX_NAMED]) + more
            wanted = " or ".join(self._sites or ())
            raise UserError(f"no module that attends has a path like {wanted}; modules that attend: {names}")
        if self._outside:
            raise UserError(
                "all attention was outside of a call of the model: call the model itself, not its forward, another "
                "method or another model"
            )


def kernel_of(call: Call) -> Kernel:
    """The kernel for a call that was made here: the eager one where no other serves it."""
    try:
        return choose(call)
    except ValueError:
        return choose(call, "eager")
