"""A run folder: everything that is needed to use a model, read and written as plain JSON and safetensors.

    config.json         {"format": "foveate/2", "weights": digest, ...}: what the model is, and the SHA-256 of its
                        weights; written last, so a folder that has it is whole
    model.safetensors   the weights; tied ones once
    ...                 files beside them, such as tokenizers, each written by whoever owns it

A file is written under a temporary name and renamed, so that a reader sees the old one or the new one and nothing
between. Nothing is ever unpickled, and nothing that was read is ever run.
"""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.files import check_utf8, read_json, written
from foveate.models import legacy_names
from foveate.tensor_files import write_tensors
from foveate.tensor_parts import file_digest, open_tensors, parts_of, read_whole

FORMAT = "foveate/2"

READERS = {"foveate/1": "commit b441e8c"}
"""What reads older formats."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"

PROCESSOR = "processor.json"
"""The file of a run folder that holds the forms of a processor."""

CHECKPOINTS = "checkpoints"
"""The folder in it that a training goes on from."""

UNFINISHED = f"{CHECKPOINTS}/unfinished"
"""The folder in it with all of a model but its weights, which the checkpoints have while the training lasts."""

MODEL = "model/"
"""What the names of a model's tensors begin with in a checkpoint."""


@dataclass
class RunDir:
    """A folder that `load` found whole."""

    folder: Path
    description: dict[str, Any]
    """What `config.json` says, without its "format"."""
    checkpoint: Path | None = None
    """The file with the weights, where the training has not ended."""
    digest: str | None = None
    """That of the file with the weights when it was saved, where `config.json` says it."""
    outer: str = ""
    """What an earlier version began names of tensors with."""

    @property
    def weights(self) -> Path:
        """The file with the weights."""
        return self.checkpoint or self.folder / WEIGHTS

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The weights, by name. Raises UserError for a damaged file."""
        return {name.removeprefix(self.outer): one for name, one in read_whole(self.weights, self._prefix).items()}

    def fill(self, model: nn.Module) -> None:
        """Give `model` the weights of this folder. Raises UserError where names, shapes or content do not fit."""
        fill(model, self.tensors, str(self.weights), f"{CONFIG} and {self.weights.name} are of two different models")
        if self.digest is not None and file_digest(self.weights) != self.digest:
            raise UserError(f"{self.weights} is damaged: its content is not what was saved with {CONFIG}")

    @property
    def numbers(self) -> int:
        """Counts the numbers of the weights, tied ones counted each time. Raises UserError for a damaged file."""
        with open_tensors(self.weights) as stored:
            return sum(math.prod(one.shape) for name, one in stored.items() if name.startswith(self._prefix))

    @property
    def _prefix(self) -> str:
        return MODEL if self.checkpoint else ""

    def path(self, name: str) -> Path:
        """Returns the path of the file `name` beside the weights. Raises UserError where there is none."""
        path = self.folder / name
        if not path.is_file():
            raise UserError(f"{self.folder} has no {name}; {_contents(self.folder)}")
        return path


def save(
    folder: Path | str,
    description: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    files: Mapping[str, Callable[[Path], object]] | None = None,
) -> None:
    """Write a model's `tensors` (its `state_dict()`) and its `description` (plain JSON values) into `folder`.

    `files` names further files and what writes each: {"tokenizer.json": tokenizer.save}. Raises UserError where the
    disk refuses; the file it was about to replace is then still there.
    """
    folder = Path(folder)
    _write_files(folder, files or {})
    write_tensors(folder / WEIGHTS, tensors)
    _write_description(folder, {"weights": file_digest(folder / WEIGHTS), **description})


def save_unfinished(
    folder: Path | str, description: Mapping[str, Any], files: Mapping[str, Callable[[Path], object]]
) -> None:
    """Write what `save` writes beside the weights, so that `load` can use a checkpoint of a training that stopped."""
    place = Path(folder) / UNFINISHED
    _write_files(place, files)
    _write_description(place, description)


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest readable checkpoint of a training that has not ended, if its model can be used."""
    if (folder / CONFIG).is_file() or not (folder / UNFINISHED / CONFIG).is_file():
        return None
    for path in sorted((folder / CHECKPOINTS).glob("step-*.safetensors"), reverse=True):
        if not path.stem.removeprefix("step-").isdecimal():
            continue
        with suppress(UserError):
            parts_of(path)
            return path
    return None


def finish(folder: Path) -> Path:
    """Save the model of a training that has not ended, as of its newest checkpoint, which is returned."""
    found = load(folder)
    if found.checkpoint is None:
        raise UserError(f"{folder} has a model already")
    for path in found.folder.iterdir():
        if path.is_file() and path.name != CONFIG:
            with written(folder / path.name) as copy:
                copy.write_bytes(path.read_bytes())
    write_tensors(folder / WEIGHTS, found.tensors)
    _write_description(folder, {"weights": file_digest(folder / WEIGHTS), **found.description})
    return found.checkpoint


def _write_files(folder: Path, files: Mapping[str, Callable[[Path], object]]) -> None:
    for name, write in files.items():
        with written(folder / name) as path:
            write(path)


def _write_description(folder: Path, description: Mapping[str, Any]) -> None:
    with written(folder / CONFIG) as path:
        text = json.dumps({"format": FORMAT, **description}, indent=2, ensure_ascii=False)
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except UnicodeEncodeError as error:
            name = text[: error.start].rpartition('"')[2] + text[error.start :].partition('"')[0]
            raise UserError(f"{name!r} is not valid UTF-8, and cannot be noted in {CONFIG}: rename it") from None


def load(folder: Path | str) -> RunDir:
    """Open a folder that `save` wrote, or that of a training that has not ended, with the newest checkpoint's weights.

    Raises UserError, one line, for anything missing, damaged or unknown.
    """
    folder = Path(folder)
    check_utf8(folder)
    if not folder.is_dir():
        raise UserError(f"{folder} is {'a file, not a run folder' if folder.exists() else 'not a folder'}")
    checkpoint = None
    if not (folder / CONFIG).is_file():
        checkpoint = newest_checkpoint(folder)
        if checkpoint is not None:
            folder = folder / UNFINISHED
        elif (folder / CHECKPOINTS).is_dir():
            raise UserError(f"{folder} has no {CONFIG} yet: its training did not end; the same command goes on")
        else:
            raise UserError(f"{folder} has no {CONFIG}: no model was ever saved there; {_contents(folder)}")
    description = read_json(folder / CONFIG)
    found = description.pop("format", None)
    if found != FORMAT:
        older = f"; {READERS[str(found)]} of foveate reads it" if str(found) in READERS else ""
        raise UserError(f"{folder / CONFIG} has format {found!r}; this version of foveate reads {FORMAT!r} only{older}")
    if checkpoint is None and not (folder / WEIGHTS).is_file():
        raise UserError(f"{folder} has no {WEIGHTS}; {_contents(folder)}")
    digest = description.pop("weights", None)
    if not isinstance(digest, str | None):
        raise UserError(f"{folder / CONFIG}: weights is {digest!r}, but must be their digest")
    outer = legacy_names.OUTER.get(str(description.get("family")), "")
    opened = RunDir(
        folder, legacy_names.upgrade(description), checkpoint, digest if checkpoint is None else None, outer
    )
    parts_of(opened.weights)  # tells of a damaged file
    return opened


def fill(model: nn.Module, tensors: Mapping[str, Tensor], where: str, cause: str) -> None:
    """Copy `tensors` into `model`. Raises UserError that names `where` they come from and the likely `cause`."""
    check_fit(_shapes(model.state_dict()), _shapes(tensors), where, cause)
    model.load_state_dict(dict(tensors))


def check_fit(wanted: Mapping[str, torch.Size], given: Mapping[str, torch.Size], where: str, cause: str) -> None:
    """Raise UserError where the tensors given have other names or shapes than the wanted ones."""
    for kind, names in (("lacks", wanted.keys() - given.keys()), ("has the unknown", given.keys() - wanted.keys())):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(f"{where} {kind} tensor '{min(names)}'{more}: probably {cause}")
    for name, shape in wanted.items():
        if shape != given[name]:
            shapes = f"{tuple(given[name])} there, but {tuple(shape)} in the model"
            raise UserError(f"{where}: '{name}' is {shapes}: probably {cause}")


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _contents(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return f"it holds {shown}" if names else "it is empty"
