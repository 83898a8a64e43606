"""Assigns recorded calls to sites: which calls of a module are rows of one map, and which begin a new map."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from foveate.attention.attend import SOFT
from foveate.attention.call import Call
from foveate.sight.key_store import KeyStore, Span, collapse, copy_tensor, keep_tensor, parent_rows
from foveate.sight.mutation_guard import CACHE_SIZE, MutationGuard
from foveate.sight.recorded_call import RecordedCall
from foveate.sight.site import Site


class SiteIndex:
    """The sites of all modules, while a model runs step by step or several times."""

    def __init__(self, with_keys: bool) -> None:
        self.sites: dict[str, Site] = {}
        """By name: a module's path, with "#2" and so on for its later maps."""
        self._with_keys = with_keys
        self._of_module: dict[str, list[Site]] = {}
        self._run = 0
        self._first_open_run = 0
        """The run that last began another map of a module. Maps of earlier runs are complete."""
        self._last_growth = 0
        """The run in which a module last attended to new keys."""
        self._guards: deque[MutationGuard] = deque(maxlen=CACHE_SIZE)
        """Guards of recent tensors: a model passes the same mask to all its layers."""

    def begin_run(self) -> None:
        """Count a call of the whole model."""
        self._run += 1

    def assign(self, module: str, call: Call, alone: bool = False) -> tuple[Site, RecordedCall]:
        """The site that a call belongs to, and the record of the call, which is not added yet.

        `alone` says that nobody writes to its queries and keys.
        """
        for site in self._of_module.setdefault(module, []):
            if site.calls[0].run >= self._first_open_run and (span := self._match(site, call)):
                return site, self._record(site, call, span, alone)
        others = self._of_module[module]
        if others and others[-1].calls[0].run < self._run:
            self._first_open_run = self._run
        name = module if not others else f"{module}#{len(others) + 1}"
        site = Site(name, KeyStore(call.keys, alone) if self._with_keys else None)
        others.append(site)
        self.sites[name] = site
        return site, self._record(site, call, Span(0, call.keys.shape[-2], 0), alone)

    def discard_if_empty(self, site: Site) -> None:
        """Remove a site whose only call was not recorded after all."""
        if not site.calls:
            del self.sites[site.name]
            self._of_module[site.name.split("#")[0]].remove(site)

    def _record(self, site: Site, call: Call, span: Span, alone: bool) -> RecordedCall:
        """The record of a call, without what is stored elsewhere or is not kept."""
        no_keys = call.keys.new_empty(*call.keys.shape[:-2], 0, call.keys.shape[-1])
        if self._with_keys:
            queries = keep_tensor(call.queries, alone).expand(call.queries.shape)  # once if all examples share them
            kept = replace(call, queries=queries, keys=no_keys, values=no_keys)
        else:
            shape_only = call.queries.new_empty(()).expand(call.queries.shape)
            kept = replace(call, queries=shape_only, keys=no_keys, values=no_keys, mask=None, bias=None, select=SOFT)
            site.last_key = copy_tensor(call.keys[..., -1:, :])
        guards = tuple(map(self._guard, kept.tensors()))
        return RecordedCall(kept, span, site.count, self._run, guards=guards)

    def _guard(self, tensor: Tensor) -> MutationGuard:
        guard = next((guard for guard in self._guards if guard.tensor is tensor and guard.unchanged), None)
        if guard is None:
            guard = MutationGuard(tensor)
            self._guards.append(guard)
        return guard

    def _match(self, site: Site, call: Call) -> Span | None:
        """The span of a call's keys among those of a site, if the call continues its map."""
        first, last = site.calls[0], site.calls[-1]
        steps, count = call.queries.shape[-2], call.keys.shape[-2]
        if first.call.leading != call.leading:
            return None
        if site.keys is None:
            ends = [last.end + new for new in _new_keys(call.keys, site.last_key)] if steps == 1 else []
            firsts = (end - count for end in ends)
            return next((Span(first, count, 0) for first in firsts if first >= last.span.first), None)
        before = site.keys.full_span.length
        span = site.keys.extend(call.keys, steps, self._last_growth == self._run)
        if site.keys.full_span.length > before:
            self._last_growth = self._run
        elif last.run < self._run != self._last_growth and _rows_of_last_run(site) > 1:
            return None  # the whole source and target once more, not one more step
        return span


def _new_keys(keys: Tensor, last_key: Tensor | None) -> Iterator[int]:
    """Possible numbers of keys after the previous last key, which may be in any order of the batch: 0, or 1.

    With a growing cache a call has one more key than before; with a cropped cache it has as many as before, or fewer.
    """
    for new in range(min(2, keys.shape[-2])):
        end = collapse(keys[..., keys.shape[-2] - 1 - new :, :][..., :1, :])
        if last_key is not None and end.shape == last_key.shape and parent_rows(end, last_key) is not None:
            yield new


def _rows_of_last_run(site: Site) -> int:
    return sum(call.count for call in site.calls if call.run == site.calls[-1].run)
