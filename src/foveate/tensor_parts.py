"""Tensors of which several safetensors files have a part each, and one file that says which these are.

    step-00000004.safetensors                       whole tensors; its metadata names the parts and their SHA-256
    step-00000004/part-00001-of-00002.safetensors   parts of tensors, and where in the whole each one begins
    step-00000004/part-00002-of-00002.safetensors

Each process writes a file of its own and reads what it needs of any. The file that names them is written last: until
then there is nothing. Files of parts have the form of `torch.distributed.checkpoint`'s HuggingFaceStorageWriter, so
that torch's reader opens their folder. That writer itself is not used, because its processes send each other pickles,
and because its files are not written whole or not at all.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import EllipsisType
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.files import parse_json
from foveate.tensor_files import open_file, owners, read_metadata, write_tensors

PARTS = "parts"
"""What the metadata calls the folder and the files of parts."""

BEGINS = "DCP_SHARDING_INFO"
"""What torch calls where parts begin, in the metadata of their file."""

Slices = tuple[slice, ...]


@dataclass
class TensorParts:
    """The files of a folder that have parts of tensors, and their digests."""

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[Path]:
        return [self.folder / name for name in sorted(self.digests)]

    def note(self) -> dict[str, str]:
        """Returns the metadata about the folder for the file beside it."""
        return {PARTS: json.dumps({"folder": self.folder.name, "files": self.digests})}

    def damaged(self, number: int = 0, of: int = 1) -> list[Path]:
        """Returns the damaged files. Only every `of`-th file is read, from `number` on."""
        return [path for path in self.paths[number::of] if file_digest(path) != self.digests[path.name]]


def part_name(number: int, of: int) -> str:
    return f"part-{number + 1:05d}-of-{of:05d}.safetensors"


def write_part(path: Path, parts: Mapping[str, tuple[Tensor, Sequence[int]]]) -> str:
    """Write parts of tensors by name, with where in the whole they begin. Returns the SHA-256 of the file."""
    begins = {name: {"saved_offsets": list(begin)} for name, (_, begin) in parts.items()}
    write_tensors(path, {name: tensor for name, (tensor, _) in parts.items()}, {BEGINS: json.dumps(begins)})
    return file_digest(path)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parts_of(path: Path) -> TensorParts | None:
    """The parts that a file names, all of them there; None where it has whole tensors alone.

    Raises UserError where the file or one of the parts is missing, truncated or damaged.
    """
    note = read_metadata(path).get(PARTS)
    if note is None:
        return None
    try:
        found = parse_json(note, f"{path}, its parts")
        names = [str(found["folder"]), *map(str, found["files"])]
        parts = TensorParts(path.parent / names[0], {str(name): str(digest) for name, digest in found["files"].items()})
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged: it does not say which files have its parts") from None
    if any(Path(name).name != name or name == ".." for name in names):
        raise UserError(f"{path} is damaged: its parts are in another place")
    for part in parts.paths:
        read_metadata(part)
    return parts


def folders_of(paths: Iterable[Path]) -> set[Path]:
    """The folders with parts that files name, as far as these are there and readable."""
    found = set()
    for path in paths:
        with suppress(UserError):
            parts = parts_of(path)
            found |= {parts.folder} if parts else set()
    return found


@contextmanager
def open_tensors(path: Path) -> Iterator[dict[str, "StoredTensor"]]:
    """The tensors of a file and of the parts that it names. Raises UserError like `parts_of`."""
    parts = parts_of(path)
    found: dict[str, StoredTensor] = {}
    with ExitStack() as stack:
        for each in [path, *(parts.paths if parts else [])]:
            for name, piece in _pieces(stack.enter_context(open_file(each)), each):
                found.setdefault(name, StoredTensor(path, name)).add(piece)
        yield found


def read_whole(path: Path, prefix: str = "") -> dict[str, Tensor]:
    """The whole tensors whose names begin with `prefix`, which is taken off. Raises UserError like `parts_of`."""
    with open_tensors(path) as stored:
        wanted = {name: one for name, one in stored.items() if name.startswith(prefix)}
        owned = {one.owner: one for one in wanted.values()}
        tensors = {owner: one[...] for owner, one in owned.items()}
        return {name.removeprefix(prefix): tensors[one.owner] for name, one in wanted.items()}


@dataclass
class _Piece:
    """A part of a tensor in an open file: under which name, and which part."""

    file: Any
    name: str
    begin: Sequence[int]
    shape: Sequence[int]

    def read(self, wanted: Slices) -> tuple[Tensor, Slices] | None:
        """Reads its part of the numbers that are wanted, and where among these it belongs."""
        here, there = [], []
        for one, begin, length in zip(wanted, self.begin, self.shape, strict=True):
            first, end = max(one.start, begin), min(one.stop, begin + length)
            if first >= end:
                return None
            here.append(slice(first - begin, end - begin))
            there.append(slice(first - one.start, end - one.start))
        whole = [one.stop - one.start for one in here] == list(self.shape)
        tensor = self.file.get_tensor(self.name) if whole else self.file.get_slice(self.name)[tuple(here)]
        return tensor, tuple(there)


def _pieces(file: Any, path: Path) -> Iterator[tuple[str, _Piece]]:
    """Lists the tensors of an open file: whole tensors, or parts where its metadata says where these begin."""
    note = (file.metadata() or {}).get(BEGINS)
    begins = {} if note is None else parse_json(note, f"{path}, where its parts begin")
    for name, owner in owners(file, path).items():
        shape = file.get_slice(owner).get_shape()
        try:
            begin = [0] * len(shape) if note is None else [int(one) for one in begins[owner]["saved_offsets"]]
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path} is damaged: it does not say where '{owner}' begins") from None
        if len(begin) != len(shape) or min(begin, default=0) < 0:
            raise UserError(f"{path} is damaged: '{owner}' cannot begin at {begin}")
        yield name, _Piece(file, owner, begin, shape)


class StoredTensor:
    """A tensor in open files. Its numbers are read when they are asked for, and no others."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._pieces: list[_Piece] = []

    def add(self, piece: _Piece) -> None:
        """Add a part."""
        self._pieces.append(piece)
        if len(piece.shape) != len(self._pieces[0].shape):
            raise UserError(f"{self._path} is damaged: parts of '{self._name}' have several numbers of dimensions")

    @property
    def owner(self) -> str:
        """The name under which it lies, which tied ones share."""
        return self._pieces[0].name

    @property
    def dtype(self) -> str:
        """The type of its numbers, as safetensors names it: "F32", "U8"."""
        found: str = self._pieces[0].file.get_slice(self._pieces[0].name).get_dtype()
        return found

    @property
    def shape(self) -> torch.Size:
        """That of the whole tensor."""
        ends = [[begin + n for begin, n in zip(one.begin, one.shape, strict=True)] for one in self._pieces]
        return torch.Size(max(each) for each in zip(*ends, strict=True))

    def __getitem__(self, wanted: Slices | EllipsisType) -> Tensor:
        """The numbers of one slice in each dimension, or all. Raises UserError where no file has some of them."""
        if isinstance(wanted, EllipsisType):
            wanted = tuple(slice(0, length) for length in self.shape)
        found = [read for piece in self._pieces if (read := piece.read(wanted)) is not None]
        shape = [one.stop - one.start for one in wanted]
        if sum(part.numel() for part, _ in found) != math.prod(shape):
            raise UserError(f"{self._path} is damaged: its parts do not make up '{self._name}'")
        if len(found) == 1:
            return found[0][0]
        like = found[0][0] if found else self._pieces[0].file.get_tensor(self._pieces[0].name)
        whole = torch.empty(shape, dtype=like.dtype)
        for part, place in found:
            whole[place] = part
        return whole
