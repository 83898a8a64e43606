"""The accelerator of this machine: a CUDA GPU, Apple's (MPS) or Intel's (XPU), all asked through `torch.accelerator`.

No other file asks which kind of device there is. Tested on a pretended device (`tests/device/`), not yet on a real one.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

NO_AUTOCAST = ("meta",)
"""Types of devices without automatic mixed precision."""


def accelerator_type() -> str | None:
    """The type of this machine's accelerator, such as "cuda"; None without one. PyTorch is built for one type alone."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return None if found is None else found.type


def device_of(model: nn.Module) -> torch.device:
    """The device of a model's weights; the CPU for a model without any."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def is_accelerator(device: torch.device) -> bool:
    """Returns whether a device computes apart from the processor, with memory and random numbers of its own."""
    return device.type not in ("cpu", "meta")


def accelerator_names() -> list[str]:
    """What the accelerators of this machine are called."""
    kind = accelerator_type()
    if kind is None:
        return []
    name = getattr(torch.get_device_module(kind), "get_device_name", lambda number: kind)
    return [name(number) for number in range(torch.accelerator.device_count())]


def device_count(kind: str) -> int:
    """The accelerators of a type that this machine has; 0 for a type that PyTorch does not know."""
    try:
        return int(torch.get_device_module(kind).device_count())
    except (RuntimeError, AttributeError):
        return 0


def enabled_kernels() -> dict[str, bool]:
    """PyTorch's kernels of attention for GPUs, and whether each is enabled."""
    switches = torch.backends.cuda  # the switches of all accelerators, not of CUDA alone
    return {
        "flash": switches.flash_sdp_enabled(),
        "efficient": switches.mem_efficient_sdp_enabled(),
        "math": switches.math_sdp_enabled(),
    }


def device_memory(device: torch.device) -> int:
    """The bytes that a device can hold: of its own memory, or of the machine's where it has none."""
    if is_accelerator(device):
        try:
            return torch.accelerator.get_memory_info(device)[1]
        except (RuntimeError, NotImplementedError):  # Apple's GPU shares the memory of the machine
            pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def multiplies_bfloat16(device: torch.device) -> bool:
    """Returns whether an accelerator itself multiplies numbers in bfloat16."""
    supported = getattr(torch.get_device_module(device), "is_bf16_supported", None)
    return supported is not None and bool(supported(including_emulation=False))


@cache
def compiles(kind: str) -> bool:
    """Returns whether PyTorch compiles for a type of devices: it tries to compile something, for which a machine may
    lack the compiler, or a device the age."""
    try:
        torch.compile(lambda x: x + 1)(torch.zeros(8, device=kind))
    except Exception:
        return False
    return True


def compiles_attention(kind: str) -> bool:
    """Returns whether PyTorch compiles FlexAttention for a type of devices, backward pass included."""
    return kind in ("cuda", "xpu") and find_spec("triton") is not None and compiles(kind)


def has_fused_optimizers(device: torch.device) -> bool:
    """Returns whether PyTorch updates all weights on a device by one operation."""
    return device.type in _get_fused_kernels_supported_devices()


def communication_backend(device: torch.device) -> str:
    """The libraries by which processes exchange tensors on the CPU and on a device."""
    own = torch.distributed.get_default_backend_for_device(device)
    return f"cpu:gloo,{device.type}:{own}" if is_accelerator(device) else own


def read_numbers(tensors: Sequence[Tensor]) -> list[float]:
    """The numbers in tensors without dimensions. The processor waits for the device once."""
    if not tensors:
        return []
    kind = torch.float64 if any(tensor.dtype is torch.float64 for tensor in tensors) else torch.float32
    numbers: list[float] = torch.stack([tensor.detach().to(kind) for tensor in tensors]).tolist()
    return numbers


def random_state(device: torch.device) -> Tensor:
    """The state of an accelerator's own random numbers: bytes on the CPU."""
    module: Any = torch.get_device_module(device)
    return module.get_rng_state() if device.type == "mps" else module.get_rng_state(device)  # there is one Apple GPU


def set_random_state(state: Tensor, device: torch.device) -> None:
    """Restore the result of `random_state`."""
    module: Any = torch.get_device_module(device)
    module.set_rng_state(state) if device.type == "mps" else module.set_rng_state(state, device)


@contextmanager
def forked_random_numbers(device: torch.device) -> Iterator[None]:
    """Afterwards the random numbers of the CPU and of the device go on where they were."""
    state = random_state(device) if is_accelerator(device) else None
    with torch.random.fork_rng([]):
        yield
    if state is not None:
        set_random_state(state, device)
