"""What the CPU of this machine can compute in."""

import time
from functools import cache

import torch

_FASTER = 1.2
"""How many times as fast as in float32 products in bfloat16 must be: above the noise of a measurement."""
_ROWS, _WIDTH, _TIMES = 512, 256, 7


def cpu_has(*instructions: str) -> bool:
    """Returns whether the CPU has at least one of these instruction sets, by torch's names for them."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in instructions)


def cpu_has_bfloat16() -> bool:
    """Returns whether the CPU multiplies in bfloat16."""
    return cpu_has("amx_bf16", "avx512_bf16", "sve_bf16")


def cpu_has_bfloat16_lstm() -> bool:
    """Returns whether torch has an LSTM in bfloat16 for this CPU: its kernel needs AVX-512, and stops without it."""
    return cpu_has("avx512_bw")


@cache
def bfloat16_is_fast() -> bool:
    """Returns whether this CPU multiplies matrices faster in bfloat16 than in float32: measured once, in some 20 ms.

    The instructions do not tell. AVX512-BF16 doubles the speed of an AMD EPYC, and halves that of an Intel Xeon whose
    AMX is not there, as in some virtual machines.
    """
    if not cpu_has_bfloat16():
        return False
    single, half = (_seconds_of_product(precision) for precision in (torch.float32, torch.bfloat16))
    return single > _FASTER * half


def _seconds_of_product(precision: torch.dtype) -> float:
    """The shortest time of several linear layers of one size."""
    rows, weight = torch.ones(_ROWS, _WIDTH, dtype=precision), torch.ones(_WIDTH, _WIDTH, dtype=precision)
    times = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        torch.nn.functional.linear(rows, weight)
        times.append(time.perf_counter() - start)
    return min(times)
