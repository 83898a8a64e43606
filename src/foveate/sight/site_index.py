"""Which calls of a module are rows of one map, and which begin a new one."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from foveate.attention.call import Call
from foveate.sight.key_store import Keys, Span, bare, own, parent_rows
from foveate.sight.mutation_guard import REMEMBERED, Unwritten
from foveate.sight.recorded_call import Rows
from foveate.sight.site import Site


class Maps:
    """The maps of all modules while a model runs, perhaps step by step, perhaps several times."""

    def __init__(self, with_keys: bool) -> None:
        self.sites: dict[str, Site] = {}
        """By name: a module's path, with "#2" and so on for its later maps."""
        self._with_keys = with_keys
        self._of_module: dict[str, list[Site]] = {}
        self._run = 0
        self._fresh = 0
        """The run that last began a map of a module that had one: all older maps are over then."""
        self._wrote = 0
        """The run in which a module last looked at keys that had grown."""
        self._lent: deque[Unwritten] = deque(maxlen=REMEMBERED)
        """The last tensors of the model's own: it hands the same mask to all its layers."""

    def begin_run(self) -> None:
        """The model is called."""
        self._run += 1

    def place(self, module: str, call: Call) -> tuple[Site, Rows]:
        """The map that a call belongs to, and its rows there, which are not added yet."""
        for site in self._of_module.setdefault(module, []):
            if site.rows[0].run >= self._fresh and (span := self._continued(site, call)):
                return site, self._rows(site, call, span)
        others = self._of_module[module]
        if others and others[-1].rows[0].run < self._run:
            self._fresh = self._run
        name = module if not others else f"{module}#{len(others) + 1}"
        site = Site(name, Keys(call.keys) if self._with_keys else None)
        others.append(site)
        self.sites[name] = site
        return site, self._rows(site, call, Span(0, call.keys.shape[-2], 0))

    def drop(self, site: Site) -> None:
        """Forget a map whose only call turned out not to be what it seemed."""
        if not site.rows:
            del self.sites[site.name]
            self._of_module[site.name.split("#")[0]].remove(site)

    def _rows(self, site: Site, call: Call, span: Span) -> Rows:
        """A call without what can be had elsewhere or is not to be kept."""
        no_keys = call.keys.new_empty(*call.keys.shape[:-2], 0, call.keys.shape[-1])
        if self._with_keys:
            queries = own(call.queries).expand(call.queries.shape)  # once where all examples have the same
            kept = replace(call, queries=queries, keys=no_keys, values=no_keys)
        else:
            shape_alone = call.queries.new_empty(()).expand(call.queries.shape)
            kept = replace(call, queries=shape_alone, keys=no_keys, values=no_keys, mask=None, bias=None)
            site.newest = own(call.keys[..., -1:, :])
        return Rows(kept, span, site.count, self._run, lent=tuple(map(self._watched, kept.tensors())))

    def _watched(self, tensor: Tensor) -> Unwritten:
        found = next((lent for lent in self._lent if lent.tensor is tensor and lent.holds), None)
        if found is None:
            found = Unwritten(tensor)
            self._lent.append(found)
        return found

    def _continued(self, site: Site, call: Call) -> Span | None:
        """The keys of a call among those of a map, if it goes on with that map."""
        first, last = site.rows[0], site.rows[-1]
        steps, count = call.queries.shape[-2], call.keys.shape[-2]
        if first.call.leading != call.leading:
            return None
        if site.keys is None:
            ends = [last.end + new for new in _new_keys(call.keys, site.newest)] if steps == 1 else []
            firsts = (end - count for end in ends)
            return next((Span(first, count, 0) for first in firsts if first >= last.span.first), None)
        before = site.keys.last.length
        span = site.keys.continued(call.keys, steps, self._wrote == self._run)
        if site.keys.last.length > before:
            self._wrote = self._run
        elif last.run < self._run != self._wrote and _rows_of_last_run(site) > 1:
            return None  # all of a source and its target once more, not one step more
        return span


def _new_keys(keys: Tensor, newest: Tensor | None) -> Iterator[int]:
    """How many keys may have come behind the one that was the last before, in any order of the batch: 0, or 1.

    A cache that grows has one more key then, one that forgets as many as before, or fewer.
    """
    for new in range(min(2, keys.shape[-2])):
        end = bare(keys[..., keys.shape[-2] - 1 - new :, :][..., :1, :])
        if newest is not None and end.shape == newest.shape and parent_rows(end, newest) is not None:
            yield new


def _rows_of_last_run(site: Site) -> int:
    return sum(rows.count for rows in site.rows if rows.run == site.rows[-1].run)
