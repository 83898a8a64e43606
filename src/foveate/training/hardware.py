"""The device, the threads and the precision of training."""

import os
import sys

import torch
from torch import nn

from foveate.accelerator import accelerator_type, device_count, is_accelerator, multiplies_bfloat16
from foveate.errors import OwnError, UserError
from foveate.nn import bfloat16_is_fast
from foveate.training.parallel.launch import ProcessInfo, process_info
from foveate.training.settings import Training

WIDE = 64
"""The width from which bfloat16 is faster on a CPU that multiplies faster in it.

On one core of a CPU with AVX512-BF16, a Transformer of width 64 trains 1.3 times as fast, 1.6 times with width 128 and
1.9 times with 256; a GRU with attention 1.7 times.
"""


MOST_WORKERS = 16
"""Processes that prepare batches, where the user gives no number."""


def choose_device(name: str) -> torch.device:
    """The device of this name. "auto" is an accelerator if there is one. Each of several processes has its own GPU.

    Raises UserError if it cannot be used.
    """
    if name == "auto":
        name = accelerator_type() or "cpu"
    if here := process_info():
        name = _own_device(name, here)
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:  # torch raises any of them, with a long message
        reason = str(error).split("\n")[0].split(". ")[0]
        raise OwnError(f"device '{name}' cannot be used on this machine: {reason}") from None
    if device.type == "meta":
        raise UserError("device 'meta' cannot be used on this machine: it has no memory")
    return device


def _own_device(name: str, here: ProcessInfo) -> str:
    """The device of one of several processes."""
    kind, _, number = name.partition(":")
    if name == "meta" or number:
        raise UserError(f"device '{name}' cannot serve {here.size} processes: use {kind} (a GPU for each), or cpu")
    if name == "cpu":
        return name
    if here.local_size > (gpus := device_count(kind)):
        raise UserError(
            f"{here.local_size} processes on this machine, but {gpus} GPUs: start one process for each GPU, "
            f"or train on the CPU"
        )
    return f"{kind}:{here.local_rank}"


def use_threads(threads: int | None) -> None:
    """Set the number of CPU threads; None leaves it to PyTorch.

    torchrun sets one thread for each of several processes. In that case, the processes share the processors evenly.
    """
    here = process_info()
    if threads is None and here and os.environ.get("OMP_NUM_THREADS") == "1":
        threads = max(1, _processors() // here.local_size)
    if threads is not None:
        torch.set_num_threads(threads)


def choose_workers(settings: Training, slow: bool) -> int:
    """How many processes prepare batches: what the settings say, or the processors that are free, where it is slow."""
    if settings.workers is not None or not slow or sys.platform != "linux":
        return settings.workers or 0
    here, on_cpu = process_info(), choose_device(settings.device).type == "cpu"
    own = _processors() // (here.local_size if here else 1)
    used = (settings.threads or torch.get_num_threads()) if on_cpu else 1
    return min(MOST_WORKERS, max(0, own - used))


def _processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def autocast_type(precision: str, model: nn.Module, device: torch.device) -> torch.dtype | None:
    """The type of matrix products where it is not that of the weights: by the setting, or for "auto" bfloat16 if it is
    faster."""
    if precision != "auto":
        return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
    faster = multiplies_bfloat16(device) if is_accelerator(device) else _is_wide(model) and bfloat16_is_fast()
    return torch.bfloat16 if faster else None


def _is_wide(model: nn.Module) -> bool:
    """Returns whether most weights are in matrices that are wide enough, or in convolutions, which gain at any
    width."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim in (2, 4)]
    sizes = [(part.numel(), WIDE if part.ndim == 4 else min(part.shape)) for part in matrices]
    return sum(size for size, width in sizes if width >= WIDE) > sum(size for size, _ in sizes) / 2
