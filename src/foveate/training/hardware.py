"""Where and in what precision to compute."""

import torch
from torch import nn

from foveate.contracts import UserError

WIDE = 512
"""The width from which bfloat16 on a CPU pays well.

Forward and backward on a CPU with AVX512-BF16: a Transformer of width 128 became 1.2 times as fast, of 512 1.6 times,
of 1,024 1.8 times; an attentive GRU of width 128 no faster, of 512 1.3 times. Below, exactness is worth more.
"""


def choose_device(name: str) -> torch.device:
    """The device a user named; "auto" is a CUDA GPU if there is one. Raises UserError where it does not exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch raises either, with a page of text
        reason = str(error).split("\n")[0].split(". ")[0]
        raise UserError(f"device '{name}' cannot be used on this machine: {reason}") from None
    return device


def wants_bfloat16(precision: str, model: nn.Module, device: torch.device) -> bool:
    """Whether to multiply matrices in bfloat16, by the setting or, for "auto", where it pays."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and _cpu_has_bfloat16() and _is_wide(model)


def _cpu_has_bfloat16() -> bool:
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("amx_bf16", "avx512_bf16", "sve_bf16"))


def _is_wide(model: nn.Module) -> bool:
    sizes = [(parameter.numel(), min(parameter.shape)) for parameter in model.parameters() if parameter.ndim == 2]
    return sum(size for size, width in sizes if width >= WIDE) > sum(size for size, _ in sizes) / 2
