"""Where and in what precision to compute."""

import os

import torch
from torch import nn

from foveate.errors import OwnError, UserError
from foveate.nn import cpu_has_bfloat16
from foveate.training.parallel.launch import ProcessInfo, process_info

WIDE = 64
"""The width from which bfloat16 on a CPU pays.

Training on one core of a CPU with AVX512-BF16: a Transformer of width 64 became 1.3 times as fast, of 128 1.6 times, of
256 1.9 times; an attentive GRU of either width 1.7 times.
"""


def choose_device(name: str) -> torch.device:
    """The device a user named; "auto" is a CUDA GPU if there is one. Of several processes each has a GPU of its own.

    Raises UserError where it does not exist.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if here := process_info():
        name = _own_device(name, here)
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:  # torch raises any, with a page of text
        reason = str(error).split("\n")[0].split(". ")[0]
        raise OwnError(f"device '{name}' cannot be used on this machine: {reason}") from None
    if device.type == "meta":
        raise UserError("device 'meta' cannot be used on this machine: it holds no numbers")
    return device


def _own_device(name: str, here: ProcessInfo) -> str:
    """The device of one of several processes."""
    if name not in ("cpu", "cuda"):
        raise UserError(f"device '{name}' cannot be that of {here.size} processes: name cuda (each takes one), or cpu")
    if name == "cpu":
        return name
    if here.local_size > torch.cuda.device_count():
        gpus = torch.cuda.device_count()
        raise UserError(
            f"{here.local_size} processes on this machine, but {gpus} GPUs: start as many processes as there are GPUs, "
            f"or train on the CPU"
        )
    return f"cuda:{here.local_rank}"


def use_threads(threads: int | None) -> None:
    """Compute on so many CPU threads; without a number, on PyTorch's own choice.

    torchrun allows each of several processes one thread, whatever the machine has, unless OMP_NUM_THREADS says
    otherwise. Here they share the machine's processors evenly.
    """
    here = process_info()
    if threads is None and here and os.environ.get("OMP_NUM_THREADS") == "1":
        threads = max(1, _processors() // here.local_size)
    if threads is not None:
        torch.set_num_threads(threads)


def _processors() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wants_bfloat16(precision: str, model: nn.Module, device: torch.device) -> bool:
    """Whether to multiply matrices in bfloat16, by the setting or, for "auto", where it pays."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and cpu_has_bfloat16() and _is_wide(model)


def _is_wide(model: nn.Module) -> bool:
    sizes = [(parameter.numel(), min(parameter.shape)) for parameter in model.parameters() if parameter.ndim == 2]
    return sum(size for size, width in sizes if width >= WIDE) > sum(size for size, _ in sizes) / 2
