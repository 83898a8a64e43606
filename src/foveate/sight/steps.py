"""Calls of one query each, one after the other on the same keys: recorded as one call, and checked together.

A recurrent decoder attends to its source once for each step. Each step is compared with the model's output as any call
is, but in one computation for all steps, which costs much less than one for each.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.attention.selection import Weighing
from foveate.sight.key_store import copy_tensor
from foveate.sight.output_check import WHOLE, OutputCheck, check_output, some_examples
from foveate.sight.recorded_call import RecordedCall
from foveate.sight.site import Site

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By the bytes of a number: integers as large, which NumPy knows."""


def may_have_steps(call: Call, attended: Attended, recorded: RecordedCall) -> bool:
    """Returns whether later calls can be rows of this one: it has one query, and nothing in it depends on the row."""
    rowwise = call.bias is not None or (call.mask is not None and call.mask.rowwise)
    soft = isinstance(call.select, Weighing) and attended.choice is None and attended.weights is None
    one = call.queries.shape[-2] == 1 and call.keys.shape[-2] > 0
    return one and soft and not rowwise and not call.dropout and recorded.position is None


class Steps:
    """The last call of a module, to which the next ones are added while they read the same keys in the same way."""

    def __init__(self, site: Site, recorded: RecordedCall, call: Call, own: bool) -> None:
        """`call` is the first one, which is recorded and checked already, with the keys and values of the model.

        An `own` model, of foveate's modules alone, writes to no keys while it runs: they are compared in the end.
        """
        self._site, self._recorded, self._call, self._own = site, recorded, call, own
        self._queries: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._versions = _versions(call)
        self._values: Tensor | None = None
        """The values of the further steps, which later ones of the model may overwrite."""

    @property
    def device(self) -> str:
        return self._call.queries.device.type

    def take(self, call: Call, attended: Attended) -> bool:
        """Add a call, if it is one more step; whether it is."""
        first = self._call
        same = (
            call.score is first.score
            and call.select is first.select
            and call.bias is None
            and not call.dropout
            and attended.weights is None
            and attended.choice is None
            and call.queries.shape == first.queries.shape
            and call.queries.dtype == first.queries.dtype
            and _same_memory(call.keys, first.keys)
            and _same_memory(call.values, first.values)
            and (call.mask is first.mask or (call.mask is not None and call.mask.same_as(first.mask)))
            and (self._own or self._unchanged(call))
        )
        if same:
            if self._values is None:
                self._values = self._keys if _same_memory(call.values, call.keys) else copy_tensor(call.values)
            self._queries.append(copy_tensor(call.queries).expand(call.queries.shape))
            self._outputs.append(attended.output.detach().clone())
        return same

    def close(self) -> OutputCheck | None:
        """Join the steps to the first call; how far the output of these steps is from what the record implies."""
        if self._values is None:
            return None
        queries, values = torch.cat(self._queries, -2), self._values.expand(self._call.values.shape)
        call = replace(self._call, queries=queries, keys=self._keys, values=values)
        box = some_examples(call, len(self._queries)) if self._own else WHOLE
        check = check_output(call, Attended(torch.cat(self._outputs, -2)), range(queries.shape[-2]), box)
        if self._own and check is not None and not self._unchanged(self._call):
            check.error = math.inf
        if check is None or check.passed:
            kept = self._recorded.call
            self._recorded.call = replace(kept, queries=torch.cat([kept.queries, queries], -2))
            self._site.errors += [] if check is None else [check.error]
        return check

    @property
    def _keys(self) -> Tensor:
        """The keys as they are stored."""
        return self._site.keys.read(self._recorded.span)  # type: ignore[union-attr]

    def _unchanged(self, call: Call) -> bool:
        """Returns whether nobody wrote to the keys since the last step, as to a cache; who writes values writes keys
        too."""
        versions = _versions(call)
        return _equal(call.keys, self._keys) if versions is None else versions == self._versions


def _versions(call: Call) -> tuple[int, int] | None:
    """Returns how often keys and values were written to; None for tensors of inference mode, which do not count
    that."""
    if call.keys.is_inference() or call.values.is_inference():
        return None
    return call.keys._version, call.values._version


def _same_memory(one: Tensor, other: Tensor) -> bool:
    """Returns whether two tensors, both alive, are the same numbers in memory."""
    return one is other or (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )


def _equal(one: Tensor, stored: Tensor) -> bool:
    """Returns whether a tensor has the same bits as its copy; NumPy compares several times as fast as torch."""
    one, other = one.detach(), stored.expand(one.shape)
    if one.device.type != "cpu":
        return torch.equal(one, other)
    kind = _INTEGERS[one.element_size()]
    return np.array_equal(one.view(kind).numpy(), other.view(kind).numpy())
