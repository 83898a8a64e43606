"""The forward pass of a training, compiled with its backward pass by torch.compile."""

from collections.abc import Callable

import torch

from foveate.accelerator import compiles, compiles_attention
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.training.parallel import Processes
from foveate.training.parallel.placement import Placement


def compiled_forward(placement: Placement, processes: Processes) -> Callable[..., Output]:
    """Returns the forward pass of a placed model, compiled for inputs of any size.

    The model itself stays as it is: it is validated, looked at and saved uncompiled. Raises UserError where PyTorch
    cannot compile, and on several processes.
    """
    if processes.size > 1:
        raise UserError("a model is compiled on one process only: leave compile out, or train on one process")
    kind = placement.device.type
    if not compiles(kind):
        missing = "install g++, or name a compiler in CXX" if kind == "cpu" else "install Triton"
        raise UserError(f"PyTorch finds no compiler for the device {kind}: {missing}, or leave compile out")
    compiles_attention(kind)  # tries it, for the first time, outside of what is compiled
    torch.compiler.assume_constant_result(compiles_attention)
    compiled: Callable[..., Output] = torch.compile(placement.working, dynamic=True)
    return compiled
