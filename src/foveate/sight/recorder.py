"""Records what a model attends to while it runs, and checks that each recorded call made the output."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.errors import UserError
from foveate.sight.call_adapter import has_values
from foveate.sight.fixed_weights import with_fixed_weights
from foveate.sight.output_check import OutputCheck, check_output, check_sample, some_queries
from foveate.sight.query_positions import first_query_position
from foveate.sight.site_index import SiteIndex
from foveate.sight.steps import Steps, may_have_steps
from foveate.sight.untraced import MAX_NAMED, Place, Untraced


class Recorder:
    """The running modules, and the calls recorded so far."""

    def __init__(
        self, sites: Sequence[str] | None = None, keep: Sequence[str] | None = None, own: bool = False
    ) -> None:
        self.index = SiteIndex(with_keys=keep is None)
        self.untraced = Untraced()
        self.notes: list[str] = []
        """How the look changed the run of the model, if it did."""
        self.own = own
        """Whether the model consists of foveate's modules alone (see `own_models`)."""
        self._sites, self._keep = sites, keep
        self._running: list[tuple[str, nn.Module]] = []
        self._steps: dict[str, tuple[Steps, Place | None]] = {}
        """By module: the call to which its next one may be a further step, and where to note that it does not fit."""
        self._thread = threading.get_ident()
        self._in_call = False
        self._unselected: set[str] = set()
        """Modules that attended and are not selected."""
        self._outside = False
        """Whether there was attention while no module of the model ran."""

    @property
    def recording(self) -> bool:
        """Whether an attention call would be recorded now: the model runs, and the call is not part of another one."""
        return bool(self._running) and self._may_record

    @property
    def _may_record(self) -> bool:
        repeated = torch._C._current_graph_task_id() != -1  # a checkpointed part runs again in the backward pass
        return not self._in_call and not repeated and threading.get_ident() == self._thread

    def skip(self) -> None:
        """Note an attention call that is not recorded."""
        self._outside |= not self._running and self._may_record

    def enter(self, name: str, module: nn.Module) -> None:
        """Note that a module begins to run."""
        kind = type(module).__name__
        if threading.get_ident() != self._thread:
            if torch._C._current_graph_task_id() == -1:  # a backward pass runs in other threads
                self.untraced.add(name, kind, "thread")
            return
        if not self._running:
            self.index.begin_run()
        self._running.append((name, module))
        self.untraced.enter(name, kind)

    def leave(self, module: nn.Module) -> None:
        """Note that a module has ended or failed, and with it all modules that began after it.

        A module that did not begin is ignored: a hook before that of the look failed.
        """
        if threading.get_ident() != self._thread:
            return
        began = [place for place, (_, running) in enumerate(self._running) if running is module]
        for _ in self._running[began[-1] :] if began else ():
            self._running.pop()
            self.untraced.leave()
        if not self._running:
            for name in [*self._steps]:
                self._close_steps(name)

    @contextmanager
    def inside_call(self) -> Iterator[None]:
        """Do not record attention calls that are part of the running one."""
        self._in_call = True
        try:
            yield
        finally:
            self._in_call = False

    def is_selected(self, name: str) -> bool:
        """Returns whether the `sites` of the look select a module."""
        return self._sites is None or any(fnmatchcase(name, pattern) for pattern in self._sites)

    def note_fast_path(self) -> None:
        """Note that the running module would have used torch's native Transformer code without the look."""
        name, module = self._running[-1]
        if not self.notes and not module.training and getattr(module, "batch_first", False):
            self.notes.append(
                f"{name or 'the model'} and similar modules ran without torch's native fast path, where nothing can "
                "be seen; outputs agree up to rounding, except at padding"
            )

    def record(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None) -> None:
        """Record a call of the running module.

        Its output must match the call, after `finish` if it is given; otherwise the module is added to the untraced
        ones. Queries and keys are copied, since a cache may overwrite them, and since a slice of a joint projection
        would keep all of it alive. That costs little compared with attention.
        """
        if not has_values(call.queries):
            self.untraced.note_opaque()
            return
        self.untraced.note_recorded()
        module, running = self._running[-1]
        if not self.is_selected(module):
            self._unselected.add(module)
            return
        if finish is None and module in self._steps and self._steps[module][0].take(call, attended):
            return
        self._close_steps(module)
        with self._measuring(call.queries.device.type):
            self._record(module, running, call, attended, finish)

    def _record(
        self,
        module: str,
        running: nn.Module,
        call: Call,
        attended: Attended,
        finish: Callable[[Tensor], Tensor] | None,
    ) -> None:
        if attended.weights is not None:
            call = with_fixed_weights(call, attended.weights)
        site, recorded = self.index.assign(module, call, self.own and call.projected)
        recorded.position = None if site.calls else first_query_position(call, running)
        of_model = call
        if site.keys is not None:  # check the copies, since they are what will be shown
            call = replace(call, queries=recorded.call.queries, keys=site.keys.read(recorded.span))
        check = self._check(call, attended, finish)
        if check is not None and not check.passed:
            self.index.discard_if_empty(site)
            self.untraced.note_mismatch()
            return
        recorded.choice = None if attended.choice is None else attended.choice.clone()
        if self._keep is not None:
            site.compute_measures(recorded, call, [name for name in self._keep if name != "output_error"])
        site.calls.append(recorded)
        site.errors += [] if check is None else [check.error]
        if site.keys is not None and finish is None and may_have_steps(of_model, attended, recorded):
            self._steps[module] = Steps(site, recorded, of_model, self.own), self.untraced.place

    def _check(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None) -> OutputCheck | None:
        every = "output_error" in (self._keep or ())
        if self.own and not every:
            return check_sample(call, attended, len(self.index.sites))
        queries = range(call.queries.shape[-2]) if every else some_queries(call)
        return check_output(call, attended, queries, finish=finish)

    def _close_steps(self, module: str) -> None:
        """Check and keep the further steps of a module's last call; note it where they do not fit."""
        if module not in self._steps:
            return
        steps, place = self._steps.pop(module)
        with self._measuring(steps.device):
            check = steps.close()
        if check is not None and not check.passed:
            self.untraced.note_mismatch(place)

    @contextmanager
    def _measuring(self, device: str) -> Iterator[None]:
        """Compute what is not part of the model: nothing of it is recorded, received, or has gradients."""
        autocast = torch.autocast(device, enabled=False)
        unintercepted = torch._C.DisableTorchFunction()  # as what is called here need not be received
        with self.inside_call(), unintercepted, torch.inference_mode(False), torch.no_grad(), autocast:
            yield

    def check(self, model: nn.Module) -> None:
        """Raise UserError if a module attended without being recorded, so that an empty sight means no attention."""
        self.untraced.check(model, self.is_selected, bool(self.index.sites))
        if self.index.sites:
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
