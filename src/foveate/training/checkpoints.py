"""Checkpoints: one safetensors file for all that a training must remember.

    model/...        the model's state
    optimizer/...    the optimizer's state, by the number of the parameter
    random/...       the states of the main process' random number generators
    random/1/...     those of the process of rank 1, and so on
    metadata         progress and settings, as JSON

From the newest one a training on a CPU goes on and ends bit for bit where it would have ended without the break. It may
go on with another number of processes, however the model lies on them: then all but its random numbers are the same.
The main process alone reads and writes; the others are told.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.training.folder_lock import check_folder
from foveate.training.parallel import Placement, Processes
from foveate.training.randomness import begin_random_numbers, random_states, restore_random_states
from foveate.training.settings import FREE, Progress, Training

FORMAT = "foveate-checkpoint/1"
CHANGED = "the model is built differently from when this training began"

CONTENT = " (content of "
"""What stands between the name of a setting and that of a file, in an identity, before the digest of what it holds."""


class Checkpoints:
    """The checkpoints in one folder: the last few, for resuming and averaging, and the best."""

    def __init__(
        self, folder: Path, settings: Training, identity: Mapping[str, Any], processes: Processes | None = None
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.processes = processes or Processes()
        self.latest: Progress | None = None
        """What the last checkpoint that was written or read says."""
        # through JSON, so that it compares equal to what a file gives back
        self.fixed = json.loads(json.dumps({**_flat(identity), **settings.fixed()}))

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.safetensors"

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, from the first to the last."""
        names = [path.stem.removeprefix("step-") for path in self.folder.glob("step-*.safetensors")]
        return sorted(int(name) for name in names if name.isdigit())

    def save(self, placed: Placement, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write a checkpoint, then remove those that nothing needs any more. All processes take part."""
        random = self.processes.gathered(random_states(placed.device))
        with placed.gathered() as model:
            tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
            for index, state in optimizer.state_dict()["state"].items():
                tensors |= {f"optimizer/{index}/{name}": placed.whole(value) for name, value in state.items()}
            for rank, states in enumerate(random):
                tensors |= {f"{_random(rank)}{name}": state for name, state in states.items()}
            self.processes.on_main(lambda: self._write(tensors, progress))
        self.latest = replace(progress)

    def _write(self, tensors: Mapping[str, Tensor], progress: Progress) -> None:
        metadata = {"format": FORMAT, "progress": json.dumps(asdict(progress)), "fixed": json.dumps(self.fixed)}
        try:
            bundle.write_tensors(self.path(progress.step), tensors, metadata)
        except UserError as error:
            raise UserError(f"{error}; {self._intact()}") from None
        self._prune(progress)

    def _intact(self) -> str:
        if step := self._newest_readable():
            return f"{self.path(step).name} is intact: the same command resumes from there"
        return "there was no checkpoint yet"

    def check(self) -> None:
        """Raise UserError where this training cannot go on: before data is read, which may take long."""
        if step := self._newest_readable():  # what is damaged is told by `resume`
            self._compare(self._metadata(step)[0], self.path(step))

    def refuse(self) -> None:
        """Raise UserError where the folder has checkpoints of another training."""
        if steps := self.steps():
            raise UserError(
                f"{self.folder.parent} holds a training at step {steps[-1]:,}: resume it, or name another folder"
            )

    def resume(self, placed: Placement, optimizer: torch.optim.Optimizer) -> tuple[Progress, list[str]]:
        """Put everything back as the newest readable checkpoint says; change nothing where there is none.

        The second value is a line for each newer checkpoint that was damaged and passed over. Raises UserError where
        all are damaged, where a setting changed that may not change, and where the model is another. All processes
        take part, and have equal weights afterwards.
        """
        tensors: dict[str, Tensor] = {}

        def read() -> dict[str, Any]:
            progress, damaged = self._read(tensors)
            if progress.step:
                bundle.fill(placed.model, _part(tensors, "model/"), str(self.path(progress.step)), CHANGED)
            return {"progress": asdict(progress), "damaged": damaged}

        found = self.processes.on_main(read)
        progress = from_dict(Progress, found["progress"], str(self.folder))
        self.processes.equalise(placed.model.state_dict().values())
        placed.scatter()
        if progress.step:
            _restore_optimizer(optimizer, placed, self.processes.sent(_part(tensors, "optimizer/")))
            self._restore_random(dict(self.processes.sent(_part(tensors, "random/"))), placed.device, progress.step)
            self.latest = replace(progress)
        return progress, found["damaged"]

    def _read(self, tensors: dict[str, Tensor]) -> tuple[Progress, list[str]]:
        """The progress of the newest readable checkpoint, with a line for each that is not; fills `tensors` with it."""
        damaged: list[str] = []
        for step in reversed(self.steps()):
            try:
                fixed, progress = self._metadata(step)
                tensors |= bundle.read_tensors(self.path(step)).tensors
            except UserError as error:
                damaged.append(str(error))
                continue
            self._compare(fixed, self.path(step))
            return progress, damaged
        if damaged:
            raise UserError(f"no checkpoint in {self.folder} can be read, remove them to begin anew: {damaged[0]}")
        check_folder(self.folder.parent)
        return Progress(), []

    def _restore_random(self, states: Mapping[str, Tensor], device: torch.device, step: int) -> None:
        rank = self.processes.rank
        own = _part({f"random/{name}": state for name, state in states.items()}, _random(rank))
        if own:
            restore_random_states(own, device)
        else:
            begin_random_numbers(self.settings.seed, rank, step)

    def fill(self, model: nn.Module, steps: Sequence[int]) -> None:
        """Give `model` the mean of the weights it had at `steps`."""
        bundle.fill(model, self.average(steps), str(self.folder), CHANGED)

    def last_regular(self, newest: int) -> list[int]:
        """The last checkpoints up to `newest` that were due, for averaging: none that an interruption wrote between."""
        regular = [step for step in self.steps() if step <= newest and (self.settings.saves(step) or step == newest)]
        return regular[-self.settings.average :]

    def _newest_readable(self) -> int | None:
        return next((step for step in reversed(self.steps()) if not self.damaged([step])), None)

    def damaged(self, steps: Iterable[int]) -> dict[int, str]:
        """What is wrong with those of the checkpoints at `steps` that cannot be read."""
        found = {}
        for step in steps:
            try:
                self._metadata(step)
            except UserError as error:
                found[step] = str(error)
        return found

    def average(self, steps: Sequence[int]) -> dict[str, Tensor]:
        """The mean of the models at `steps`; what is no floating-point number (a counter) is that of the last."""
        sums: dict[str, Tensor] = {}
        last: dict[str, Tensor] = {}
        for step in steps:
            self._metadata(step)
            last = bundle.read_tensors(self.path(step), "model/").tensors
            sums = {name: sums.get(name, 0) + tensor.double() for name, tensor in last.items()}
        means = {name: (total / len(steps)).to(last[name].dtype) for name, total in sums.items()}
        return {name: means[name] if tensor.is_floating_point() else tensor for name, tensor in last.items()}

    def _metadata(self, step: int) -> tuple[dict[str, Any], Progress]:
        """The settings that a checkpoint may not be resumed without, and its progress."""
        path = self.path(step)
        metadata = bundle.read_metadata(path)
        if metadata.get("format") != FORMAT:
            raise UserError(f"{path} is no checkpoint that this version of foveate wrote")
        try:
            fixed, progress = (json.loads(metadata[part]) for part in ("fixed", "progress"))
            return dict(fixed), from_dict(Progress, progress, str(path))
        except UserError:
            raise
        except (KeyError, ValueError, TypeError):
            raise UserError(f"{path} is damaged: it does not tell how it was trained, and how far") from None

    def _compare(self, then: dict[str, Any], path: Path) -> None:
        run = path.parent.parent
        contents = {name.partition(CONTENT)[2]: value for name, value in self.fixed.items() if CONTENT in name}
        for name in sorted(then.keys() - FREE, key=_importance):  # an earlier version may have fixed more, or less
            file = name.partition(CONTENT)[2]
            before, now = then[name], contents.get(file) if file else self.fixed.get(name)
            if before == now or (file and now is None):  # of what is not there, its reader will tell
                continue
            if file:
                other = f"that began with another {file.removesuffix(')')}: put that back"
            elif name == "task":
                other = f"of another task, {before}: give that"
            else:
                other = f"with {name} {before!r}, not {now!r}: resume it with {before!r}"
            raise UserError(f"{run} holds a training {other}, or train in another folder")

    def _prune(self, progress: Progress) -> None:
        """Remove what nothing needs any more, and what is later: it could not be read when training was resumed."""
        kept = {*self.last_regular(progress.step), progress.best_step}
        for step in self.steps():
            if step not in kept:
                self.path(step).unlink()


def _restore_optimizer(
    optimizer: torch.optim.Optimizer, placed: Placement, tensors: Iterable[tuple[str, Tensor]]
) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors:
        index, key = name.split("/")
        state.setdefault(int(index), {})[key] = placed.part(tensor, parameters[int(index)])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _importance(name: str) -> tuple[bool, bool, str]:
    """What comes first where several settings differ: the task and the model explain most others."""
    return name != "task", name != "model", name


def _random(rank: int) -> str:
    """How the names of a process' random states begin."""
    return f"random/{rank}/" if rank else "random/"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree of mappings as one, with names like "model.width"."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
