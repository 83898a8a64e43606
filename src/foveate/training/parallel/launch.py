"""Which of several processes this one is, from the environment variables of torchrun."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch.distributed as dist

from foveate.errors import UserError

ADVICE = "start several processes with torchrun, which sets these variables, or one process without them"


@dataclass(frozen=True)
class ProcessInfo:
    """The position of this process among the processes of a training."""

    rank: int
    """Its number, from 0."""
    size: int
    """The number of processes."""
    local_rank: int
    """Its number on this machine, from 0."""
    local_size: int
    """The number of processes on this machine."""


def process_info(environment: Mapping[str, str] = os.environ) -> ProcessInfo | None:
    """The position of this process; None if it is the only one.

    It is read from the process group, if the caller made one, or from the environment variables of the launcher. Raises
    UserError if they are invalid.
    """
    if dist.is_available() and dist.is_initialized():
        rank, size = dist.get_rank(), dist.get_world_size()
        local = int(environment.get("LOCAL_RANK", rank)), int(environment.get("LOCAL_WORLD_SIZE", size))
        return ProcessInfo(rank, size, *local) if size > 1 else None
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return None
    size = _number(environment, "WORLD_SIZE", least=1)
    rank = _number(environment, "RANK", below=("WORLD_SIZE", size))
    if size == 1:
        return None
    local_size = _number(environment, "LOCAL_WORLD_SIZE", least=1, below=("WORLD_SIZE + 1", size + 1))
    local_rank = _number(environment, "LOCAL_RANK", below=("LOCAL_WORLD_SIZE", local_size))
    _number(environment, "MASTER_PORT", least=1, below=("the number of ports", 65_536))
    if not environment.get("MASTER_ADDR"):
        raise UserError(f"MASTER_ADDR is not set, but WORLD_SIZE is {size}: {ADVICE}")
    return ProcessInfo(rank, size, local_rank, local_size)


def main_process() -> bool:
    """Returns whether this process prints, writes files and validates: it has rank 0, or it is the only one."""
    here = process_info()
    return here is None or here.rank == 0


def _number(environment: Mapping[str, str], name: str, least: int = 0, below: tuple[str, int] | None = None) -> int:
    text = environment.get(name)
    if text is None:
        others = ", ".join(f"{other}={environment[other]}" for other in ("RANK", "WORLD_SIZE") if other in environment)
        raise UserError(f"{name} is not set, but {others} is: {ADVICE}")
    if not text.isdecimal():
        raise UserError(f"{name} is '{text}', but must be a whole number: {ADVICE}")
    number = int(text)
    if number < least:
        raise UserError(f"{name} is {number}, but must be at least {least}: {ADVICE}")
    if below is not None and number >= below[1]:
        raise UserError(f"{name} is {number}, but must be below {below[0]}, which is {below[1]}: {ADVICE}")
    return number
