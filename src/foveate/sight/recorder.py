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
from foveate.sight.hidden import Hidden
from foveate.sight.known import known
from foveate.sight.maps import Maps
from foveate.sight.proof import proof


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

    @property
    def listening(self) -> bool:
        """Whether an attention call now is one of the model's own, and no part of one that is noted already."""
        again = torch._C._current_graph_task_id() != -1  # in a backward pass, a checkpointed part runs once more
        return bool(self._running) and not self._noting and not again and threading.get_ident() == self._thread

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

    def leave(self) -> None:
        """The module that began last has run."""
        if threading.get_ident() == self._thread:
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
        self.hidden.seen()
        module, _ = self._running[-1]
        if not self.wanted(module):
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
