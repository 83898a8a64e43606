"""A run folder: everything that is needed to use a model, read and written as plain JSON and safetensors.

    config.json         {"format": "foveate/2", "weights": digest, ...}: what the model is, and the SHA-256 of its
                        weights; written last, so a folder that has it is whole
    model.safetensors   the weights; tied ones once
    ...                 files beside them, such as tokenizers, each written by whoever owns it

A file is written under a temporary name and renamed, so that a reader sees the old one or the new one and nothing
between. Nothing is ever unpickled, and nothing that was read is ever run.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.files import parse_json, read_json, written

FORMAT = "foveate/2"

READERS = {"foveate/1": "commit b441e8c"}
"""What reads older formats."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"

CHECKPOINTS = "checkpoints"
"""The folder in it that a training goes on from."""

UNFINISHED = f"{CHECKPOINTS}/unfinished"
"""The folder in it with all of a model but its weights, which the checkpoints have while the training lasts."""

MODEL = "model/"
"""What the names of a model's tensors begin with in a checkpoint."""


@dataclass
class Bundle:
    """A folder that `load` found whole."""

    folder: Path
    description: dict[str, Any]
    """What `config.json` says, without its "format"."""
    checkpoint: Path | None = None
    """The file with the weights, where the training has not ended."""
    digest: str | None = None
    """That of the file with the weights when it was saved, where `config.json` says it."""

    @property
    def weights(self) -> Path:
        """The file with the weights."""
        return self.checkpoint or self.folder / WEIGHTS

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The weights, by name. Raises UserError for a damaged file."""
        return read_tensors(self.weights, self._prefix).tensors

    def fill(self, model: nn.Module) -> None:
        """Give `model` the weights of this folder. Raises UserError where names, shapes or content do not fit."""
        fill(model, self.tensors, str(self.weights), f"{CONFIG} and {self.weights.name} are of two different models")
        if self.digest is not None and file_digest(self.weights) != self.digest:
            raise UserError(f"{self.weights} is damaged: its content is not what was saved with {CONFIG}")

    @property
    def numbers(self) -> int:
        """How many numbers the weights are, tied ones counted each time. Raises UserError for a damaged file."""
        with _opened(self.weights) as file:
            owners = _owners(file, self.weights)
            own = [owner for name, owner in owners.items() if name.startswith(self._prefix)]
            return sum(math.prod(file.get_slice(owner).get_shape()) for owner in own)

    @property
    def _prefix(self) -> str:
        return MODEL if self.checkpoint else ""

    def path(self, name: str) -> Path:
        """Where the file `name` beside the weights lies. Raises UserError where there is none."""
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
        with suppress(UserError):
            read_metadata(path)
            return path
    return None


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def load(folder: Path | str) -> Bundle:
    """Open a folder that `save` wrote, or that of a training that has not ended, with the newest checkpoint's weights.

    Raises UserError, one line, for anything missing, damaged or unknown.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder} is {'a file, not a run folder' if folder.exists() else 'no folder'}")
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
    opened = Bundle(folder, description, checkpoint, digest if checkpoint is None else None)
    _opened(opened.weights)
    return opened


def fill(model: nn.Module, tensors: Mapping[str, Tensor], where: str, cause: str) -> None:
    """Copy `tensors` into `model`. Raises UserError that names `where` they come from and the likely `cause`."""
    wanted = model.state_dict()
    for kind, names in (("lacks", wanted.keys() - tensors.keys()), ("has the unknown", tensors.keys() - wanted.keys())):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(f"{where} {kind} tensor '{min(names)}'{more}: probably {cause}")
    for name, tensor in wanted.items():
        if tensor.shape != tensors[name].shape:
            shapes = f"{tuple(tensors[name].shape)} there, but {tuple(tensor.shape)} in the model"
            raise UserError(f"{where}: '{name}' is {shapes}: probably {cause}")
    model.load_state_dict(dict(tensors))


@dataclass
class TensorFile:
    """What a safetensors file holds."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str] = field(default_factory=dict)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write one safetensors file; tensors that are one and the same in memory (tied) are written once."""
    owners: dict[tuple, str] = {}
    kept, tied = {}, {}
    taken: set[int] = set()
    for name, tensor in tensors.items():
        owner = owners.setdefault(_identity(tensor) if tensor.numel() else (name,), name)
        if owner == name:
            kept[name] = _own(tensor, taken)
        else:
            tied[name] = owner
    with written(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        save_file(kept, temporary, {"format": "pt", "tied": json.dumps(tied), **(metadata or {})})
        _in_order(temporary)
        temporary.chmod(mode)  # safetensors makes its files readable to their owner only


def read_tensors(path: Path, prefix: str = "") -> TensorFile:
    """Read a file of `write_tensors`, tied names included: only names that begin with `prefix`, which is taken off.

    Raises UserError where the file is missing, truncated or damaged.
    """
    with _opened(path) as file:
        names = {name: owner for name, owner in _owners(file, path).items() if name.startswith(prefix)}
        tensors = {owner: file.get_tensor(owner) for owner in set(names.values())}
        metadata = {key: value for key, value in (file.metadata() or {}).items() if key != "tied"}
    return TensorFile({name.removeprefix(prefix): tensors[owner] for name, owner in names.items()}, metadata)


def _owners(file: Any, path: Path) -> dict[str, str]:
    """The name under which each tensor of an opened file lies, tied ones included."""
    own = {name: name for name in file.keys()}  # noqa: SIM118
    try:
        tied = dict(parse_json((file.metadata() or {}).get("tied", "{}"), f"{path}, its tied tensors"))
        unknown = set(tied.values()) - own.keys()
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged: its tied tensors cannot be read: {error}") from None
    if unknown:
        raise UserError(f"{path} is damaged: it ties tensors to '{min(map(str, unknown))}', which is not there")
    return own | tied


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file, without reading its tensors. Raises UserError like `read_tensors`."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


def _in_order(path: Path) -> None:
    """Sort a safetensors file's metadata, which the library writes in random order: equal models make equal files."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        file.seek(8)
        file.write(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size))


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, "pt")
    except SafetensorError as error:
        raise UserError(f"{path} is truncated or damaged ({path.stat().st_size:,} bytes): {error}") from None
    except OSError as error:
        raise UserError(f"could not read {path}: {error.strerror or error}") from None


def _identity(tensor: Tensor) -> tuple:
    return tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _own(tensor: Tensor, taken: set[int]) -> Tensor:
    """The tensor on the CPU, contiguous, alone in its memory; `taken` collects the memory that has an owner."""
    tensor = tensor.detach().cpu().contiguous()
    storage = tensor.untyped_storage()
    alone = storage.nbytes() == tensor.numel() * tensor.element_size() and storage.data_ptr() not in taken
    taken.add(storage.data_ptr())
    return tensor if alone else tensor.clone()


def _contents(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return f"it holds {shown}" if names else "it is empty"
