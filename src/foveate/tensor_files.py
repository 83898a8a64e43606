"""Safetensors files: tensors by name, tied ones once, read and written without pickles."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from foveate.errors import UserError
from foveate.files import check_utf8, parse_json, written


@dataclass
class TensorFile:
    """The content of a safetensors file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str] = field(default_factory=dict)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write one safetensors file; tensors that are one and the same in memory (tied) are written once."""
    check_utf8(path)
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
    with open_file(path) as file:
        names = {name: owner for name, owner in owners(file, path).items() if name.startswith(prefix)}
        tensors = {owner: file.get_tensor(owner) for owner in set(names.values())}
        metadata = {key: value for key, value in (file.metadata() or {}).items() if key != "tied"}
    return TensorFile({name.removeprefix(prefix): tensors[owner] for name, owner in names.items()}, metadata)


def owners(file: Any, path: Path) -> dict[str, str]:
    """The name under which each tensor of an open file lies, tied ones included."""
    own = {name: name for name in file.keys()}  # noqa: SIM118
    tied = parse_json((file.metadata() or {}).get("tied", "{}"), f"{path}, its tied tensors")
    if not isinstance(tied, dict) or not all(isinstance(owner, str) for owner in tied.values()):
        raise UserError(f"{path} is damaged: its tied tensors are not a table of names")
    if unknown := set(tied.values()) - own.keys():
        raise UserError(f"{path} is damaged: it ties tensors to '{min(unknown)}', which is not there")
    return own | tied


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file, without reading its tensors. Raises UserError like `read_tensors`."""
    with open_file(path) as file:
        return dict(file.metadata() or {})


def read_names(path: Path) -> list[str]:
    """The names of the tensors in a safetensors file, without reading them. Raises UserError like `read_tensors`."""
    with open_file(path) as file:
        return [*file.keys()]


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor in a safetensors file, without reading them. Raises UserError like `read_tensors`."""
    with open_file(path) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _in_order(path: Path) -> None:
    """Sort a safetensors file's metadata, which the library writes in random order: equal models make equal files."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = parse_json(file.read(size), path)
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        file.seek(8)
        file.write(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size))


def open_file(path: Path) -> Any:
    """An open safetensors file, to be entered. Raises UserError like `read_tensors`. The library opens UTF-8 names."""
    check_utf8(path)
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
