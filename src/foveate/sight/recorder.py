"""Noting what a model attends to while it runs: what is kept of each call, and the proof that it is right."""

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
from foveate.sight.call_adapter import has_numbers
from foveate.sight.fixed_weights import known
from foveate.sight.output_check import proof
from foveate.sight.site_index import Maps
from foveate.sight.untraced import TOLD, Hidden


class Recorder:
    """What runs now, and what was seen so far."""

    def __init__(self, sites: Sequence[str] | None = None, keep: Sequence[str] | None = None) -> None:
        self.maps = Maps(with_keys=keep is None)
        self.hidden = Hidden()
        self.notes: list[str] = []
        """What happened to the model because it was looked at."""
        self._sites, self._keep = sites, keep
        self._running: list[tuple[str, nn.Module]] = []
        self._thread = threading.get_ident()
        self._noting = False
        self._elsewhere: set[str] = set()
        """What attended and was not to be looked at."""
        self._outside = False
        """Whether something attended while no module of the model ran."""

    @property
    def listening(self) -> bool:
        """Whether an attention call now is one of the model's own, and no part of one that is noted already."""
        return bool(self._running) and self._may_listen

    @property
    def _may_listen(self) -> bool:
        again = torch._C._current_graph_task_id() != -1  # in a backward pass, a checkpointed part runs once more
        return not self._noting and not again and threading.get_ident() == self._thread

    def unheard(self) -> None:
        """An attention call is made that is not listened to."""
        self._outside |= not self._running and self._may_listen

    def enter(self, name: str, module: nn.Module) -> None:
        """A module begins to run."""
        kind = type(module).__name__
        if threading.get_ident() != self._thread:
            if torch._C._current_graph_task_id() == -1:  # a backward pass has threads of its own
                self.hidden.note(name, kind, "thread")
            return
        if not self._running:
            self.maps.begin_run()
        self._running.append((name, module))
        self.hidden.enter(name, kind)

    def leave(self, module: nn.Module) -> None:
        """A module has run, or failed; so have all that began after it, of which some may not have told.

        One that did not begin is one of which another hook, before that of the look, failed.
        """
        if threading.get_ident() != self._thread:
            return
        began = [place for place, (_, running) in enumerate(self._running) if running is module]
        for _ in self._running[began[-1] :] if began else ():
            self._running.pop()
            self.hidden.leave()

    @contextmanager
    def attending(self) -> Iterator[None]:
        """While an attention call runs that is noted as a whole."""
        self._noting = True
        try:
            yield
        finally:
            self._noting = False

    def wanted(self, name: str) -> bool:
        """Whether a module is one of those that are looked at."""
        return self._sites is None or any(fnmatchcase(name, pattern) for pattern in self._sites)

    def left_fast_path(self) -> None:
        """The running module would have taken torch's native Transformer code, where nothing can be seen, if it may."""
        name, module = self._running[-1]
        if not self.notes and not module.training and getattr(module, "batch_first", False):
            self.notes.append(
                f"{name or 'the model'} and its like ran outside of torch's native fast path, where nothing can be "
                "seen; outputs agree up to rounding, but at padding"
            )

    def note(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None) -> None:
        """Keep what is needed of a call that the running module made.

        Its output must be what the call says, or what `finish` makes of that; otherwise the module is named as hidden.
        Queries and keys are copied, which costs little beside attending with them: a cache may overwrite them, and what
        was cut out of a joint projection would keep all of it alive.
        """
        if not has_numbers(call.queries):
            self.hidden.opaque()
            return
        self.hidden.seen()
        module, _ = self._running[-1]
        if not self.wanted(module):
            self._elsewhere.add(module)
            return
        autocast = torch.autocast(call.queries.device.type, enabled=False)
        with self.attending(), torch.inference_mode(False), torch.no_grad(), autocast:
            if attended.weights is not None:
                call = known(call, attended.weights)
            site, rows = self.maps.place(module, call)
            if site.keys is not None:  # what was copied is what will be shown, so that is what is checked
                call = replace(call, queries=rows.call.queries, keys=site.keys.at(rows.span))
            proven = proof(call, attended, finish, everywhere="output_error" in (self._keep or ()))
            if proven is not None and not proven.holds:
                self.maps.drop(site)
                self.hidden.unlike()
                return
            rows.choice = None if attended.choice is None else attended.choice.clone()
            if self._keep is not None:
                site.take(rows, call, [name for name in self._keep if name != "output_error"])
            site.rows.append(rows)
            site.errors += [] if proven is None else [proven.error]

    def check(self, model: nn.Module) -> None:
        """Raise UserError if something attended and was not seen, so that an empty answer means that nothing did."""
        self.hidden.check(model, self.wanted, bool(self.maps.sites))
        if self.maps.sites:
            return
        if self._elsewhere:
            names = ", ".join(sorted(self._elsewhere)[:TOLD]) + (", ..." if len(self._elsewhere) > TOLD else "")
            wanted = " or ".join(self._sites or ())
            raise UserError(f"nothing that attends has a path like {wanted}; what attends: {names}")
        if self._outside:
            raise UserError(
                "something attended, but not within a call of the model that is looked at: call that itself, not its "
                "forward, another method or another model"
            )
