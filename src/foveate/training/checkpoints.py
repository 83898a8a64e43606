"""Checkpoints: the complete state of a training in one safetensors file.

    model/...        the model's state
    optimizer/...    the optimizer's state, by the number of the parameter
    random/...       the states of the main process' random number generators
    random/1/...     those of the process of rank 1, and so on
    metadata         progress and settings, as JSON

A training on a CPU that resumes from the newest checkpoint ends with the same bits as an uninterrupted one. It may
resume with another number of processes or another placement; then only its random numbers differ. The main process
reads and writes, and broadcasts to the others.
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
from foveate.files import parse_json
from foveate.tensor_files import read_metadata, read_tensors, write_tensors
from foveate.training.folder_lock import check_folder
from foveate.training.optimizer_state import numbered_state, restore_optimizer
from foveate.training.parallel import Placement, Processes
from foveate.training.progress import Progress
from foveate.training.randomness import begin_random_numbers, random_states, restore_random_states
from foveate.training.settings import FREE, Training

FORMAT = "foveate-checkpoint/1"
CHANGED = "the architecture of the model has changed since this training started"

CHANGED_DEFAULTS = ("warmup", "schedule")
"""Settings whose defaults were others in earlier versions."""

CONTENT = " (content of "
"""Separates the name of a setting and that of a file in an identity whose value is the digest of the file."""


class Checkpoints:
    """The checkpoints in one folder: the last few, for resuming and averaging, and the best."""

    def __init__(
        self, folder: Path, settings: Training, identity: Mapping[str, Any], processes: Processes | None = None
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.processes = processes or Processes()
        self.latest: Progress | None = None
        """The progress in the last checkpoint that was written or read."""
        # Through JSON, so that it compares equal to values from a file.
        self.fixed = json.loads(json.dumps({**_flat(identity), **settings.fixed()}))

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.safetensors"

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        names = [path.stem.removeprefix("step-") for path in self.folder.glob("step-*.safetensors")]
        return sorted(int(name) for name in names if name.isdecimal())

    def save(self, placement: Placement, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write a checkpoint, then remove those that are no longer needed. Called by all processes."""
        random = self.processes.gather(random_states(placement.device))
        with placement.full_model() as model:
            tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
            for index, state in numbered_state(optimizer):
                tensors |= {f"optimizer/{index}/{name}": placement.whole(value) for name, value in state.items()}
            for rank, states in enumerate(random):
                tensors |= {f"{_random(rank)}{name}": state for name, state in states.items()}
            self.processes.on_main(lambda: self._write(tensors, progress))
        self.latest = replace(progress)

    def _write(self, tensors: Mapping[str, Tensor], progress: Progress) -> None:
        metadata = {"format": FORMAT, "progress": json.dumps(asdict(progress)), "fixed": json.dumps(self.fixed)}
        try:
            write_tensors(self.path(progress.step), tensors, metadata)
        except UserError as error:
            raise UserError(f"{error}; {self._intact()}") from None
        self._prune(progress)

    def _intact(self) -> str:
        if step := self._newest_readable():
            return f"{self.path(step).name} is intact: run the same command to resume from it"
        return "there was no checkpoint yet"

    def check(self) -> None:
        """Raise UserError if this training cannot resume, before data are read, which may take long."""
        if step := self._newest_readable():  # `resume` reports damaged ones
            self._compare(self._metadata(step)[0], self.path(step))

    def refuse(self) -> None:
        """Raise UserError if the folder has checkpoints."""
        if steps := self.steps():
            raise UserError(
                f"{self.folder.parent} has a training at step {steps[-1]:,}: resume it, or choose another folder"
            )

    def resume(self, placement: Placement, optimizer: torch.optim.Optimizer) -> tuple[Progress, list[str]]:
        """Restore the newest readable checkpoint, if there is one.

        The second value has a line for each newer checkpoint that is damaged. Raises UserError if all are damaged, if a
        setting changed that must not, or if the model is another. Called by all processes, which have equal weights
        afterwards.
        """
        tensors: dict[str, Tensor] = {}

        def read() -> dict[str, Any]:
            progress, damaged = self._read(tensors)
            if progress.step:
                bundle.fill(placement.model, _part(tensors, "model/"), str(self.path(progress.step)), CHANGED)
            return {"progress": asdict(progress), "damaged": damaged}

        found = self.processes.on_main(read)
        progress = from_dict(Progress, found["progress"], str(self.folder))
        self.processes.synchronize(placement.model.state_dict().values())
        placement.scatter()
        if progress.step:
            restore_optimizer(optimizer, placement, self.processes.broadcast(_part(tensors, "optimizer/")))
            random = dict(self.processes.broadcast(_part(tensors, "random/")))
            self._restore_random(random, placement.device, progress.step)
            self.latest = replace(progress)
        return progress, found["damaged"]

    def _read(self, tensors: dict[str, Tensor]) -> tuple[Progress, list[str]]:
        """The progress of the newest readable checkpoint, and a line for each damaged one; adds it to `tensors`."""
        damaged: list[str] = []
        for step in reversed(self.steps()):
            try:
                fixed, progress = self._metadata(step)
                tensors |= read_tensors(self.path(step)).tensors
            except UserError as error:
                damaged.append(str(error))
                continue
            self._compare(fixed, self.path(step))
            return progress, damaged
        if damaged:
            raise UserError(f"no checkpoint in {self.folder} can be read; remove them to start again: {damaged[0]}")
        check_folder(self.folder.parent)
        return Progress(), []

    def _restore_random(self, states: Mapping[str, Tensor], device: torch.device, step: int) -> None:
        rank = self.processes.leader
        own = _part({f"random/{name}": state for name, state in states.items()}, _random(rank))
        if own:
            restore_random_states(own, device)
        else:
            begin_random_numbers(self.settings.seed, rank, step)

    def fill(self, model: nn.Module, steps: Sequence[int]) -> None:
        """Load the mean of the weights at `steps` into `model`."""
        bundle.fill(model, self.average(steps), str(self.folder), CHANGED)

    def last_regular(self, newest: int) -> list[int]:
        """The last regular checkpoints up to `newest`, for averaging; without those of interruptions."""
        regular = [step for step in self.steps() if step <= newest and (self.settings.saves(step) or step == newest)]
        return regular[-self.settings.average :]

    def _newest_readable(self) -> int | None:
        return next((step for step in reversed(self.steps()) if not self.damaged([step])), None)

    def damaged(self, steps: Iterable[int]) -> dict[int, str]:
        """An error message for each checkpoint of `steps` that cannot be read."""
        found = {}
        for step in steps:
            try:
                self._metadata(step)
            except UserError as error:
                found[step] = str(error)
        return found

    def average(self, steps: Sequence[int]) -> dict[str, Tensor]:
        """The mean of the models at `steps`. Tensors that are not floating-point (a counter) are those of the last
        one."""
        sums: dict[str, Tensor] = {}
        last: dict[str, Tensor] = {}
        for step in steps:
            self._metadata(step)
            last = read_tensors(self.path(step), "model/").tensors
            sums = {name: sums.get(name, 0) + tensor.double() for name, tensor in last.items()}
        means = {name: (total / len(steps)).to(last[name].dtype) for name, total in sums.items()}
        return {name: means[name] if tensor.is_floating_point() else tensor for name, tensor in last.items()}

    def _metadata(self, step: int) -> tuple[dict[str, Any], Progress]:
        """The fixed settings of a checkpoint, and its progress."""
        path = self.path(step)
        metadata = read_metadata(path)
        if metadata.get("format") != FORMAT:
            raise UserError(f"{path} is not a checkpoint of this version of foveate")
        try:
            fixed, progress = (parse_json(metadata[part], path) for part in ("fixed", "progress"))
            return dict(fixed), from_dict(Progress, progress, str(path))
        except UserError:
            raise
        except (KeyError, ValueError, TypeError):
            raise UserError(f"{path} is damaged: its settings or its progress are missing") from None

    def _compare(self, then: dict[str, Any], path: Path) -> None:
        run = path.parent.parent
        contents = {name.partition(CONTENT)[2]: value for name, value in self.fixed.items() if CONTENT in name}
        for name in sorted(then.keys() - FREE, key=_importance):  # the fixed settings of earlier versions may differ
            file = name.partition(CONTENT)[2]
            before, now = then[name], contents.get(file) if file else self.fixed.get(name)
            if before == now or (file and now is None):  # a missing file is reported where it is read
                continue
            if file:
                other = f"that started with another {file.removesuffix(')')}: restore it"
            elif name == "task":
                other = f"of another task, {before}: use that"
            elif name in CHANGED_DEFAULTS:
                other = (
                    f"with {name} {before!r}, not {now!r} (an earlier version's default?): resume it with {before!r}"
                )
            else:
                other = f"with {name} {before!r}, not {now!r}: resume it with {before!r}"
            raise UserError(f"{run} has a training {other}, or train in another folder")

    def _prune(self, progress: Progress) -> None:
        """Remove checkpoints that are no longer needed, and later ones, which were damaged when training resumed."""
        kept = {*self.last_regular(progress.step), progress.best_step}
        for step in self.steps():
            if step not in kept:
                self.path(step).unlink()


def _importance(name: str) -> tuple[bool, bool, str]:
    """The order in which differing settings are reported: task and model explain most others."""
    return name != "task", name != "model", name


def _random(rank: int) -> str:
    """The prefix of the names of a process' random states."""
    return f"random/{rank}/" if rank else "random/"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree of mappings as one, with names like "model.width"."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
