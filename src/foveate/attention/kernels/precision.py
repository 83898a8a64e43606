"""Single precision where half precision is slower."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

import torch

from foveate.attention.call import Call
from foveate.attention.kernels.recompute import SavedCall
from foveate.attention.selection import Attended
from foveate.attention.shapes import precise


def in_single_precision(attend: Callable[[Call], Attended]) -> Callable[[Call], Attended]:
    """`attend`, in single precision if it needs gradients in half precision on a CPU. The output type stays the same.

    Torch's fused kernel takes ten times as long there, and small products are not faster.
    """

    @wraps(attend)
    def attend_in_single_precision(call: Call) -> Attended:
        learning = call.queries.requires_grad or call.keys.requires_grad or call.values.requires_grad
        on_cpu = call.queries.device.type == "cpu"
        if not (learning and on_cpu and torch.is_grad_enabled() and in_half(call)):
            return attend(call)
        queries, keys, values = map(precise, (call.queries, call.keys, call.values))
        with torch.autocast("cpu", enabled=False):
            found = attend(replace(call, queries=queries, keys=keys, values=values))
        return replace(found, output=found.output.to(SavedCall.of(call).output_dtype(call.values)))

    return attend_in_single_precision


def in_half(call: Call) -> bool:
    """Returns whether matrix products are in half precision."""
    return torch.is_autocast_enabled("cpu") or call.values.dtype.itemsize < torch.float32.itemsize
