"""What a kernel saves of a call to compute it again in the backward pass."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from foveate.accelerator import NO_AUTOCAST
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
        if device not in NO_AUTOCAST:
            kind, enabled = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
            autocast = partial(torch.autocast, device, kind, enabled)
        return cls(replace(call, queries=nothing, keys=nothing, values=nothing), autocast)

    def output_dtype(self, values: Tensor) -> torch.dtype:
        """The type of an output computed from these values."""
        with self.autocast():
            return (values[..., :0, :0] @ values[..., :0, :0].mT).dtype

    def with_tensors(self, queries: Tensor, keys: Tensor, values: Tensor) -> Call:
        return replace(self.call, queries=queries, keys=keys, values=values)


def draw_seed(generator: torch.Generator | None) -> int:
    """A seed with which both passes draw the same random numbers."""
    device = "cpu" if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))
