"""What a kernel saves of a call to compute it again in the backward pass."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from foveate.attention.autocast import WITH_AUTOCAST
from foveate.attention.call import Call


@dataclass
class SavedCall:
    """A call without its tensors. Autograd saves those, so that checkpointing and offloading see them."""

    call: Call
    autocast: Callable[[], AbstractContextManager[object]]
    """Enters the autocast state of the call."""

    @classmethod
    def of(cls, call: Call) -> "SavedCall":
        nothing = call.queries.new_empty(0, 0)
        device = call.queries.device.type
        autocast: Callable[[], AbstractContextManager[object]] = nullcontext
        if device in WITH_AUTOCAST:  # not on the meta device
            kind, enabled = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
            autocast = partial(torch.autocast, device, kind, enabled)
        return cls(replace(call, queries=nothing, keys=nothing, values=nothing), autocast)

    def output_dtype(self, values: Tensor) -> torch.dtype:
        """The type of an output computed from these values."""
        with self.autocast():
            return (values[..., :0, :0] @ values[..., :0, :0].mT).dtype

    def with_tensors(self, queries: Tensor, keys: Tensor, values: Tensor) -> Call:
        return replace(self.call, queries=queries, keys=keys, values=values)
