"""Checks what a checkpoint has beside the model, before anything of it is restored."""

import math
from collections.abc import Mapping
from pathlib import Path

import torch

from foveate.errors import UserError
from foveate.tensor_parts import StoredTensor, open_tensors
from foveate.training.metrics_log import NORM, RATE, STEPS, WEIGHT
from foveate.training.optimizer_state import parameters_by_number
from foveate.training.optimizers import state_names
from foveate.training.progress import Progress

LEARNED = "learned/"
"""What the names of the weights begin with in a checkpoint whose model has their moving average."""

OPTIMIZER, RANDOM, BATCHES = "optimizer/", "random/", "batches/"
"""What the names of the optimizer's tensors, of the states of random numbers, and of what batches remember begin
with."""


def check_progress(progress: Progress, step: int, where: str) -> None:
    """Raise UserError for the progress of a checkpoint that no training of this `step` can have."""
    counts = {name: getattr(progress, name) for name in ("epoch", "position", "epoch_length", "tokens", "stale")}
    counts |= {"validated": progress.validated, "best_step": progress.best_step}
    for name, count in counts.items():
        most = step if name in ("validated", "best_step") else math.inf
        if not 0 <= count <= most:
            raise UserError(f"{where} is damaged: its {name} is {count:,}")
    if progress.step != step:
        raise UserError(f"{where} is damaged: it is of step {progress.step:,}")
    if not (math.isfinite(progress.seconds) and progress.seconds >= 0):
        raise UserError(f"{where} is damaged: it took {progress.seconds} seconds")
    scale = progress.loss_scale
    if scale is not None and not (0 < scale.factor < math.inf and scale.steps >= 0):
        raise UserError(f"{where} is damaged: its loss_scale is {scale.factor} for {scale.steps} steps")
    if progress.window and not {STEPS, WEIGHT, NORM, RATE} <= progress.window.keys():
        raise UserError(f"{where} is damaged: its window is not that of a row of metrics")


def check_state(path: Path, optimizer: torch.optim.Optimizer) -> None:
    """Raise UserError where states of the optimizer or of random numbers are missing, or are those of nothing."""
    with open_tensors(path) as stored:
        _check_optimizer(stored, optimizer, path)
        _check_random(stored, path)


def _check_optimizer(stored: Mapping[str, StoredTensor], optimizer: torch.optim.Optimizer, path: Path) -> None:
    parameters, found = parameters_by_number(optimizer), dict[int, set[str]]()
    for name, tensor in stored.items():
        if not name.startswith(OPTIMIZER):
            continue
        number, _, key = name.removeprefix(OPTIMIZER).partition("/")
        parameter, group = parameters.get(int(number) if number.isdecimal() else -1, (None, {}))
        if parameter is None or key not in state_names(group):
            raise UserError(f"{path} is damaged: it has the unknown tensor '{name}'")
        wanted = torch.Size() if key == "step" else parameter.shape
        if tensor.shape != wanted or tensor.dtype != "F32":
            raise UserError(
                f"{path} is damaged: '{name}' is {tuple(tensor.shape)} of {tensor.dtype}, but must be {tuple(wanted)} "
                "of F32"
            )
        if not bool(tensor[...].isfinite().all()):
            raise UserError(f"{path} is damaged: '{name}' is not finite")
        found.setdefault(int(number), set()).add(key)
    for index, keys in found.items():
        if missing := state_names(parameters[index][1]) - keys:
            raise UserError(f"{path} is damaged: it lacks the tensor '{OPTIMIZER}{index}/{min(missing)}'")


def _check_random(stored: Mapping[str, StoredTensor], path: Path) -> None:
    if f"{RANDOM}cpu" not in stored:
        raise UserError(f"{path} is damaged: it lacks the tensor '{RANDOM}cpu'")
    for name, tensor in stored.items():
        if name.startswith(RANDOM) and not _is_random_state(name, tensor):
            raise UserError(f"{path} is damaged: '{name}' is not a state of random numbers")


def _is_random_state(name: str, stored: StoredTensor) -> bool:
    if stored.dtype != "U8" or len(stored.shape) != 1:
        return False
    if not name.endswith("/cpu"):  # that of a GPU, which need not be here
        return name.rpartition("/")[2].isalpha()
    try:
        torch.Generator().set_state(stored[...])
    except (RuntimeError, TypeError):
        return False
    return True
