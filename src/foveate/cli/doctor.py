"""`foveate doctor`: what this machine has, and what is slow on it and why."""

import importlib.util
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch
from rich.markup import escape
from rich.table import Table

from foveate.accelerator import accelerator_names, accelerator_type, enabled_kernels
from foveate.cli.parse import parse
from foveate.console import plain_console
from foveate.data.sources.cache import cache_folder
from foveate.errors import UserError
from foveate.experiments.comparison import processor_name
from foveate.files import check_writable
from foveate.nn import bfloat16_is_fast, cpu_has_bfloat16
from foveate.nn.precision import cpu_has
from foveate.threads import other_running_threads

EXTRAS = {
    "transformers": ("hf", "Hugging Face models in `look`"),
    "soundfile": ("audio", "ogg, flac and mp3"),
    "scipy": ("vision", "training detectors"),
    "minigrid": ("worlds", "agents in a world"),
    "panda_gym": ("panda", "agents that move a robot"),
    "tensorboard": ("tensorboard", "TensorBoard logs"),
    "pyarrow": ("hub", "data sets of the hub"),
    "onnxruntime": ("onnx", "checks of exported models"),
}
"""What is only needed for some work: the extra that brings it, and that work."""

INSTRUCTIONS = ("avx2", "avx512_f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "sve_bf16")
"""That make matrix products fast, by torch's names."""

SIZE, TIMES = 1024, 5
"""Of the matrix products that are timed."""


@dataclass
class Doctor:
    """Tell the versions, the device, the threads and the kernels of this machine, and what makes it slow."""


def main(arguments: Sequence[str]) -> None:
    parse(Doctor, arguments, "doctor")
    table = Table(show_header=False, box=None)
    for name, value in {**_versions(), **_machine(), **_packages()}.items():
        table.add_row(name, escape(value))
    plain_console().print(table)
    problems = _complaints()
    print("\n".join(["", *(f"- {line}" for line in problems)]) if problems else "\nNothing here makes foveate slow.")


def _versions() -> dict[str, str]:
    return {
        "foveate": metadata.version("foveate"),
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.platform(),
    }


def _machine() -> dict[str, str]:
    gpus = accelerator_names()
    single, half = _speed(torch.float32), _speed(torch.bfloat16)
    return {
        "processor": processor_name(),
        "instructions": " ".join(name for name in INSTRUCTIONS if cpu_has(name)) or "none that foveate asks for",
        "cores, threads": f"{_cores()}, of which torch uses {torch.get_num_threads()}",
        "matrix products": f"{single:,.0f} GFLOP/s in float32, {half:,.0f} in bfloat16 ({half / single:.1f} times)",
        "GPUs": ", ".join(gpus) or "none",
        "attention on a GPU": _gpu_kernels() if gpus else "-",
        "cache": str(cache_folder()),
    }


def _packages() -> dict[str, str]:
    def availability(package: str, extra: str, use: str) -> str:
        there = importlib.util.find_spec(package) is not None
        return f"{metadata.version(package)}" if there else f"absent: {use} need pip install 'foveate[{extra}]'"

    return {package: availability(package, *about) for package, about in EXTRAS.items()}


def _gpu_kernels() -> str:
    return " ".join(name for name, enabled in enabled_kernels().items() if enabled)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _speed(precision: torch.dtype) -> float:
    """The best of some products of square matrices, in GFLOP/s."""
    left, right = torch.randn(2, SIZE, SIZE).to(precision)
    best = float("inf")
    for _ in range(TIMES):
        start = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - start)
    return 2 * SIZE**3 / best / 1e9


def _complaints() -> list[str]:
    """Lists what makes this machine slow, or will fail."""
    cores, busy = _cores(), other_running_threads()
    complaints = []
    if busy:
        complaints.append(f"{busy} threads of other programs want a core now: training takes longer beside them")
    if torch.get_num_threads() < cores:
        complaints.append(f"torch uses {torch.get_num_threads()} of {cores} cores: see OMP_NUM_THREADS and --threads")
    if platform.machine() in ("x86_64", "AMD64") and not cpu_has("avx2"):
        complaints.append("the processor has no AVX2: matrix products take several times as long")
    if not bfloat16_is_fast() and accelerator_type() is None:
        reason = "multiplies no faster in bfloat16 than in float32" if cpu_has_bfloat16() else "has no bfloat16"
        complaints.append(f"the processor {reason}: models train in float32, at half the speed of others or less")
    available = _available_memory()
    if available is not None and available < 2**31:
        complaints.append(f"{available / 2**30:.1f} GiB of memory are free: smaller batches and models fit")
    try:
        check_writable(cache_folder())
    except UserError as error:
        complaints.append(f"data by name cannot be kept: {error}")
    return complaints


def _available_memory() -> int | None:
    """Returns the free memory in bytes, where Linux reports it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
