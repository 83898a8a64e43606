"""Checkpoints: the complete state of a training in one safetensors file.

    model/...        the model's state that it is used with: where a moving average is kept, that
    learned/...      the state that is learned, where it is another
    optimizer/...    the optimizer's state, by the number of the parameter
    random/...       the states of the main process' random number generators
    random/1/...     those of the process of rank 1, and so on
    batches/...      what batches remember of earlier ones, such as kept episodes
    metadata         progress and settings, as JSON

A training on a CPU that resumes from the newest checkpoint ends with the same bits as an uninterrupted one. It may
resume with another number of processes or another placement; then only its random numbers differ. The main process
reads and writes, and broadcasts to the others; where each process has a part of the model, it writes and reads that
part itself (`checkpoint_state.py`).
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate import run_dir
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.files import as_read, parse_json, written
from foveate.run_dir import MODEL
from foveate.tensor_files import read_metadata, write_tensors
from foveate.tensor_parts import TensorParts, folders_of, parts_of, read_whole
from foveate.training.checkpoint_checks import check_progress, check_state
from foveate.training.checkpoint_state import (
    other_state,
    own_state,
    read_state,
    receive_state,
    restore_other_state,
    whole_state,
    write_parts,
    wrong_parts,
)
from foveate.training.folder_lock import check_folder
from foveate.training.identity import changed_remedies, flat, refuse_changes
from foveate.training.parallel import Placement, Processes
from foveate.training.progress import Progress
from foveate.training.randomness import begin_random_numbers
from foveate.training.settings import FREE, REMEDIES, Training

WHOLE, PARTED = "foveate-checkpoint/1", "foveate-checkpoint/2"
"""Formats: whole tensors in one file, and parts in the files of several processes."""

NOT_FINITE = "not-finite.txt"
"""The file that notes why a training stopped whose numbers were not finite any more."""

SKIPPED = "skipped a checkpoint: "

CHANGED = "the architecture of the model has changed since this training started"


class Checkpoints:
    """The checkpoints in one folder: the last few, for resuming and averaging, and the best."""

    def __init__(
        self, folder: Path, settings: Training, identity: Mapping[str, Any], processes: Processes | None = None
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.processes = processes or Processes()
        self._wrong: set[int] = set()
        """Steps of checkpoints with parts that are not what was written."""
        self.batches: object = None
        """The batches of the training, which are saved with it where they are `Remembering`."""
        self.latest: Progress | None = None
        """The progress in the last checkpoint that was written or read."""
        # Through JSON, so that it compares equal to values from a file.
        self.fixed = as_read({**flat(identity), **settings.fixed()})

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.safetensors"

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        names = [path.stem.removeprefix("step-") for path in self.folder.glob("step-*.safetensors")]
        return sorted(int(name) for name in names if name.isdecimal())

    def save(self, placement: Placement, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write a checkpoint, then remove those that are no longer needed. Called by all processes."""
        tensors = other_state(self.processes, placement.device, self.batches)
        if placement.in_parts:
            with self._noting_what_is_intact():
                parts = write_parts(self.path(progress.step), own_state(placement, optimizer), self.processes)
            self.processes.on_main(lambda: self._write(tensors, progress, parts))
        else:
            whole = whole_state(placement, optimizer) if self.processes.main else {}
            self.processes.on_main(lambda: self._write(whole | tensors, progress))
        self._wrong.discard(progress.step)
        self.latest = replace(progress)

    def _write(self, tensors: Mapping[str, Tensor], progress: Progress, parts: TensorParts | None = None) -> None:
        metadata = {"progress": json.dumps(asdict(progress)), "fixed": json.dumps(self.fixed)}
        metadata |= {"format": WHOLE} if parts is None else {"format": PARTED, **parts.note()}
        with self._noting_what_is_intact():
            if missing := [path for path in (parts.paths if parts else ()) if not path.is_file()]:
                raise UserError(f"{missing[0]} is not there: all machines must write into one folder that they share")
            write_tensors(self.path(progress.step), tensors, metadata)
        (self.folder / NOT_FINITE).unlink(missing_ok=True)
        self._prune(progress)

    @contextmanager
    def _noting_what_is_intact(self) -> Iterator[None]:
        """Add to a UserError which checkpoint there is."""
        try:
            yield
        except UserError as error:
            raise UserError(f"{error}; {self._intact()}") from None

    def _intact(self) -> str:
        if step := self._newest_readable():
            return f"{self.path(step).name} is intact: run the same command to resume from it"
        return "there was no checkpoint yet"

    def check(self) -> None:
        """Raise UserError if this training cannot resume, before data are read, which may take long."""
        if step := self._newest_readable():  # `resume` reports damaged ones
            self._refuse_changes(self._metadata(step)[0])

    def _refuse_changes(self, fixed: Mapping[str, Any]) -> None:
        free = FREE | {*REMEDIES} if (self.folder / NOT_FINITE).exists() else FREE
        refuse_changes(fixed, self.fixed, self.folder.parent, free)

    def note_not_finite(self, reason: str, progress: Progress) -> str:
        """Note why the training stops after `progress`, so that it may resume with other REMEDIES. Returns where it
        then begins. A checkpoint of just this progress is where the numbers came from."""
        with written(self.folder / NOT_FINITE) as path:
            path.write_text(f"{reason}\n", encoding="utf-8")
        steps = self.steps()
        good = [step for step in steps if step < progress.step and not self.damaged([step])]
        if not steps:
            return "begins again"
        without = f"without {self.path(progress.step)}" if progress.step in steps else ""
        goes_on = f"goes on from step {good[-1]:,} {without}".rstrip() + ", or " if good else ""
        return f"{goes_on}begins again without {self.folder}/step-*"

    def refuse(self) -> None:
        """Raise UserError if the folder has checkpoints."""
        if steps := self.steps():
            raise UserError(
                f"{self.folder.parent} has a training at step {steps[-1]:,}: resume it, or choose another folder"
            )

    def resume(self, placement: Placement, optimizer: torch.optim.Optimizer) -> tuple[Progress, list[str]]:
        """Restore the newest readable checkpoint, if there is one.

        The second value has a line for each newer checkpoint that is damaged, and for each setting that changed. Raises
        UserError if all are damaged, if a setting changed that must not, or if the model is another. Called by all
        processes, which have equal weights afterwards.
        """
        found = self.processes.on_main(lambda: self._read(optimizer))
        while self._has_wrong_parts(found["progress"]["step"], placement):
            found = self.processes.on_main(lambda: self._read(optimizer))
        progress = from_dict(Progress, found["progress"], str(self.folder))
        if not progress.step:
            self.processes.synchronize(placement.model.state_dict().values())
            placement.scatter()
            return progress, found["lines"]
        path = self.path(progress.step)
        if placement.in_parts:
            others = read_state(path, placement, optimizer, CHANGED)
        else:
            others = receive_state(path, placement, optimizer, CHANGED, self.processes)
        self._refuse_non_finite(path, placement)
        if not restore_other_state(others, self.processes, placement.device, self.batches):
            begin_random_numbers(self.settings.seed, self.processes.leader, progress.step)
        self.latest = replace(progress)
        self.processes.on_main(lambda: self._prune_again(progress))
        return progress, found["lines"]

    def _refuse_non_finite(self, path: Path, placement: Placement) -> None:
        if (wrong := placement.not_finite(self.processes)) is not None:
            raise UserError(f"{path} is damaged: '{wrong}' is not finite; remove it to go on from an earlier one")

    def _has_wrong_parts(self, step: int, placement: Placement) -> bool:
        """Returns whether some part of a checkpoint is not what was written. Processes that read parts share the
        work."""
        if not step or not wrong_parts(self.path(step), placement, self.processes):
            return False
        self._wrong.add(step)
        return True

    def _read(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The progress of the newest readable checkpoint, and lines about damaged ones and settings that changed."""
        damaged: list[str] = []
        for step in reversed(self.steps()):
            try:
                fixed, progress = self._metadata(step)
                check_state(self.path(step), optimizer)
            except UserError as error:
                damaged.append(str(error))
                continue
            self._refuse_changes(fixed)
            lines = [f"{SKIPPED}{line}" for line in damaged]
            return {"progress": asdict(progress), "lines": lines + changed_remedies(fixed, self.fixed)}
        if damaged:
            raise UserError(f"no checkpoint in {self.folder} can be read; remove them to start again: {damaged[0]}")
        check_folder(self.folder.parent)
        return {"progress": asdict(Progress()), "lines": []}

    def fill(self, model: nn.Module, steps: Sequence[int]) -> None:
        """Load the mean of the weights at `steps` into `model`."""
        run_dir.fill(model, self.average(steps), str(self.folder), CHANGED)

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
            last = read_whole(self.path(step), MODEL)
            sums = {name: sums.get(name, 0) + tensor.double() for name, tensor in last.items()}
        means = {name: (total / len(steps)).to(last[name].dtype) for name, total in sums.items()}
        return {name: means[name] if tensor.is_floating_point() else tensor for name, tensor in last.items()}

    def _metadata(self, step: int) -> tuple[dict[str, Any], Progress]:
        """The fixed settings of a checkpoint, and its progress."""
        path = self.path(step)
        metadata = read_metadata(path)
        if metadata.get("format") not in (WHOLE, PARTED):
            raise UserError(f"{path} is not a checkpoint of this version of foveate")
        parts_of(path)
        if step in self._wrong:
            raise UserError(f"{path} is damaged: one of its parts is not what was written")
        try:
            fixed, progress = (parse_json(metadata[part], path, strict=False) for part in ("fixed", "progress"))
        except KeyError:
            raise UserError(f"{path} is damaged: its settings or its progress are missing") from None
        if not isinstance(fixed, dict):
            raise UserError(f"{path} is damaged: its settings are not a table")
        found = from_dict(Progress, progress, f"{path} is damaged")
        check_progress(found, step, str(path))
        return fixed, found

    def _prune_again(self, progress: Progress) -> None:
        """Prune where the process was killed after it wrote the newest checkpoint; damaged later ones stay for now."""
        if self.steps()[-1] == progress.step:
            self._prune(progress)

    def _prune(self, progress: Progress) -> None:
        """Remove checkpoints that are no longer needed, and later ones, which were damaged when training resumed."""
        kept = {*self.last_regular(progress.step), progress.best_step}
        for step in self.steps():
            if step not in kept:
                self.path(step).unlink()
        used = folders_of(map(self.path, kept))
        for folder in self.folder.glob("step-*/"):  # those of checkpoints that were interrupted too
            if folder not in used:
                shutil.rmtree(folder, ignore_errors=True)
