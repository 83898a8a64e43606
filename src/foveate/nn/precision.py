"""What the CPU of this machine can compute in."""

import torch


def cpu_has(*instructions: str) -> bool:
    """Whether the CPU has at least one of these instruction sets, by torch's names for them."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in instructions)


def cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies in bfloat16."""
    return cpu_has("amx_bf16", "avx512_bf16", "sve_bf16")
