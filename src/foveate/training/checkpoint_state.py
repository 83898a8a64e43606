"""What a checkpoint has of a model and its optimizer: whole, or this process' part of it."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from foveate import run_dir
from foveate.run_dir import MODEL
from foveate.tensor_parts import TensorParts, folders_of, open_tensors, part_name, parts_of, read_whole, write_part
from foveate.training.batches import Remembering
from foveate.training.checkpoint_checks import BATCHES, LEARNED, OPTIMIZER, RANDOM
from foveate.training.optimizer_state import numbered_state, restore_optimizer
from foveate.training.parallel import Placement, Processes
from foveate.training.randomness import random_states, restore_random_states

Kind = TypeVar("Kind")


def whole_state(placement: Placement, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The tensors of a process that has the whole model."""
    return dict(_state(placement, optimizer))


def own_state(placement: Placement, optimizer: torch.optim.Optimizer) -> dict[str, tuple[Tensor, tuple[int, ...]]]:
    """Returns the part of all tensors that this process writes, and where in the whole it begins: no two write the
    same."""
    parts = {name: placement.own(tensor) for name, tensor in _state(placement, optimizer)}
    return {name: part for name, part in parts.items() if part is not None}


def write_parts(path: Path, state: Mapping[str, tuple[Tensor, tuple[int, ...]]], processes: Processes) -> TensorParts:
    """Write the state of each process into a file of a folder beside `path`, which all of them see.

    A checkpoint that is there keeps its parts.
    """

    def new_folder() -> str:
        folder = path.with_suffix("")
        folder = folder.with_name(f"{folder.name}-again") if folder in folders_of([path]) else folder
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        return folder.name

    folder = path.with_name(processes.on_main(new_folder))
    names = [part_name(rank, processes.size) for rank in range(processes.size)]
    digest = write_part(folder / names[processes.rank], state)
    found = processes.gather({"digest": torch.tensor(list(bytes.fromhex(digest)), dtype=torch.uint8)})
    return TensorParts(
        folder, {name: bytes(one["digest"].tolist()).hex() for name, one in zip(names, found, strict=True)}
    )


def wrong_parts(path: Path, placement: Placement, processes: Processes) -> int:
    """Counts the parts of a checkpoint that are not what was written. Processes that read parts share the work."""
    wrong: list[Path] = []
    if placement.in_parts or processes.main:
        parts = parts_of(path)
        share = (processes.rank, processes.size) if placement.in_parts else (0, 1)
        wrong = parts.damaged(*share) if parts else []
    return int(processes.total([len(wrong)])[0])


def receive_state(
    path: Path, placement: Placement, optimizer: torch.optim.Optimizer, cause: str, processes: Processes
) -> dict[str, Tensor]:
    """Give each process the whole model and optimizer that the main process reads.

    Returns the states of random numbers, and what batches remember.
    """
    tensors: dict[str, Tensor] = {}

    def read() -> None:
        tensors.update(read_whole(path))
        run_dir.fill(placement.model, below(LEARNED, tensors) or below(MODEL, tensors), str(path), cause)

    processes.on_main(read)
    processes.synchronize(placement.model.state_dict().values())
    restore_optimizer(optimizer, placement, processes.broadcast(below(OPTIMIZER, tensors)))
    learned = below(LEARNED, tensors)
    _restore_average(placement, dict(processes.broadcast(below(MODEL, tensors) if learned else {})))
    return dict(processes.broadcast({name: one for name, one in tensors.items() if name.startswith((RANDOM, BATCHES))}))


def read_state(path: Path, placement: Placement, optimizer: torch.optim.Optimizer, cause: str) -> dict[str, Tensor]:
    """Read this process' part of the model and the optimizer. Returns the rest, as `receive_state`."""
    own = placement.working.state_dict()
    with open_tensors(path) as stored:
        model = below(LEARNED, stored) or below(MODEL, stored)
        shapes = {name: tensor.shape for name, tensor in model.items()}
        run_dir.check_fit({name: like.shape for name, like in own.items()}, shapes, str(path), cause)
        placement.working.load_state_dict({name: placement.part(model[name], like) for name, like in own.items()})
        restore_optimizer(optimizer, placement, below(OPTIMIZER, stored).items())
        average = below(MODEL, stored) if below(LEARNED, stored) else {}
        _restore_average(placement, {name: placement.part(one, own[name]) for name, one in average.items()})
        return {name: one[...] for name, one in stored.items() if name.startswith((RANDOM, BATCHES))}


def other_state(processes: Processes, device: torch.device, batches: object) -> dict[str, Tensor]:
    """The states of all processes' random numbers, and what batches remember. Called by all processes."""
    random = enumerate(processes.gather(random_states(device)))
    tensors = {f"{_random(rank)}{name}": state for rank, states in random for name, state in states.items()}
    remembered = batches.state() if isinstance(batches, Remembering) else {}
    return tensors | {f"{BATCHES}{name}": tensor for name, tensor in remembered.items()}


def restore_other_state(
    tensors: Mapping[str, Tensor], processes: Processes, device: torch.device, batches: object
) -> bool:
    """Restore what `other_state` gave. Returns whether there were random numbers of this process."""
    if isinstance(batches, Remembering):
        batches.restore(below(BATCHES, tensors))
    own = below(_random(processes.leader), tensors)
    if own:
        restore_random_states(own, device)
    return bool(own)


def _random(rank: int) -> str:
    """The prefix of the names of a process' random states."""
    return f"{RANDOM}{rank}/" if rank else RANDOM


def _restore_average(placement: Placement, tensors: Mapping[str, Tensor]) -> None:
    """Go on with the moving average of the weights, where the checkpoint has one."""
    if placement.average is not None and tensors:
        placement.average.restore(tensors, placement.state())


def _state(placement: Placement, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
    learned = placement.state()
    average = {} if placement.average is None else placement.average.tensors
    for name, tensor in (average or learned).items():
        yield f"{MODEL}{name}", tensor
    for name, tensor in learned.items() if average else ():
        yield f"{LEARNED}{name}", tensor
    for index, state in numbered_state(optimizer):
        for name, tensor in state.items():
            yield f"{OPTIMIZER}{index}/{name}", tensor


def below(prefix: str, tensors: Mapping[str, Kind]) -> dict[str, Kind]:
    """The tensors whose names begin with `prefix`, by the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
