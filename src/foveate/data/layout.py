"""Layouts of data that people have: how a folder or a file of one is recognised by its names, split and read.

The layouts of each kind of example stand in one list, such as `data.sounds.layouts.SPOKEN`; a task names its own.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from foveate.data.folders import IMAGE_FOLDERS, SOUND_FOLDERS, folders_in, is_litter, split_folders
from foveate.data.text.files import CATALOGUES, TEXTS
from foveate.errors import UserError

Found = TypeVar("Found")
"""What the layouts of a kind of example are read as."""


class Parts(NamedTuple):
    """What the names of a layout say is to train, to validate and to test on."""

    train: tuple[Path, ...] = ()
    dev: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()


@dataclass(frozen=True)
class DataLayout(Generic[Found]):
    """A layout."""

    name: str
    files: str
    """The names by which it is recognised, for pages and messages."""
    parts: Callable[[Path], Parts | None] = lambda path: None
    """The parts of a whole data set; None for anything else."""
    read: Callable[[Path], Found | None] = lambda path: None
    """Reads one part; None for anything else. Raises UserError for a part that is damaged or lacks files."""


def read_by(layouts: Sequence[DataLayout[Found]], path: Path) -> Found | None:
    """What the first layout that recognises a part reads; None where none does."""
    return next((found for layout in layouts if (found := layout.read(path)) is not None), None)


def named_parts(folder: Path, train: str, dev: str, test: str = "(?!)") -> Parts | None:
    """The files and folders in a folder whose names match the patterns, in any letter case; None where none does."""
    if not folder.is_dir():
        return None
    names = sorted(path for path in folder.iterdir() if not is_litter(path.name))
    found = Parts(*(tuple(path for path in names if re.fullmatch(one, path.name, re.I)) for one in (train, dev, test)))
    return found if any(found) else None


def _folders(folder: Path) -> Parts | None:
    found = split_folders(folder)
    return found and Parts(*((place,) if place else () for place in found))


FOLDERS: DataLayout[Any] = DataLayout("split folders", "train/, val/, test/", _folders)

_TABLE = r"[-_.]?(data)?(-\d+-of-\d+(-\w+)?)?\.(tsv|csv|jsonl?|ndjson|parquet)(\.gz)?"
"""The end of a table's name: a data set of the hub may be cut into train-00000-of-00002.parquet and the next."""


def _tables(folder: Path) -> Parts | None:
    """Those of a folder, or of the `data` in it, as data sets of the hub have them."""
    names = f"(train|training){_TABLE}", f"(val|valid|validation|dev){_TABLE}", f"(test|testing){_TABLE}"
    return named_parts(folder, *names) or named_parts(inner_folder(folder, "data"), *names)


TABLES: DataLayout[Any] = DataLayout(
    "split tables",
    "train.csv, val.csv, test.csv (or .tsv, .json, .jsonl, .parquet); or data/train-00000-of-00001.parquet",
    _tables,
)


def parts_of(data: Sequence[Path], layouts: Sequence[DataLayout[Any]]) -> Parts | None:
    """The parts of one path that a layout recognises. Raises UserError for one with nothing to train on."""
    found = _recognised(data, layouts)
    if found is None:
        return None
    layout, parts = found
    if not parts.train:
        raise UserError(f"{data[0]} is {layout.name} without a part to train on: it needs {layout.files}")
    return parts


def _recognised(data: Sequence[Path], layouts: Sequence[DataLayout[Any]]) -> tuple[DataLayout[Any], Parts] | None:
    if len(data) != 1:
        return None
    found = ((layout, layout.parts(data[0])) for layout in layouts)
    return next(((layout, parts) for layout, parts in found if parts is not None), None)


def parts_to_learn(
    data: Sequence[Path],
    validation: Sequence[Path],
    layouts: Sequence[DataLayout[Any]] = (FOLDERS,),
    tables: Sequence[str] = (),
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """What to learn from and to validate on, of data whose layout has parts; other paths as `files_of` says."""
    found = parts_of(data, layouts)
    train, dev = (data, ()) if found is None else (found.train, found.dev)
    return files_of(train, tables), files_of(tuple(validation) or dev, tables)


def part_to_measure(
    data: Sequence[Path], layouts: Sequence[DataLayout[Any]] = (FOLDERS,), tables: Sequence[str] = ()
) -> tuple[Path, ...]:
    """What to measure on, of data whose layout has parts; other paths as `files_of` says."""
    found = _recognised(data, layouts)
    if found is None:
        return files_of(data, tables)
    parts = found[1]
    return files_of(parts.test or parts.dev or parts.train, tables)


_READ_BY_FOLDER = (*TEXTS, ".lab", *CATALOGUES, ".xml", ".npz")
"""How the names of files end that are read of a folder as they lie there."""

_ABOUT = ("readme", "license", "licence", "notice")
"""How the names of texts about a data set begin."""


def files_of(paths: Sequence[Path], tables: Sequence[str]) -> tuple[Path, ...]:
    """The paths; for a folder of tables, whose names end in one of `tables`, these.

    Images and sounds may lie beside them, or in a folder of their own. A folder with any other folder in it, or with
    files that are read as they lie there, is no folder of tables.
    """
    return tuple(file for path in paths for file in _tables_in(path, tuple(tables)) or [path])


def _tables_in(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    if not endings or not folder.is_dir():
        return []
    inside = [path for path in folder.iterdir() if not is_litter(path.name)]
    others = (path for path in inside if not path.name.lower().startswith(_ABOUT))
    if any(
        path.name not in (*IMAGE_FOLDERS, *SOUND_FOLDERS)
        if path.is_dir()
        else path.name.lower().endswith(_READ_BY_FOLDER)
        for path in others
    ):
        return []
    return sorted(path for path in inside if path.is_file() and path.name.lower().endswith(endings))


def is_there(path: Path) -> bool:
    """Whether a path is on the disk, or the file of which it names a part, as in `dataset.json:val`."""
    return path.exists() or (":" in path.name and (path.parent / path.name.rpartition(":")[0]).is_file())


def inner_folder(folder: Path, name: str) -> Path:
    """The folder of this name in a folder, in any letter case; the folder itself where there is none."""
    inside = folders_in(folder) if folder.is_dir() else []
    return next((place for place in inside if place.name.lower() == name.lower()), folder)


_NEAREST, _LOOKED_AT = 2, 2000
"""How many layouts an error names, and names of files that are compared, at most."""


def suggest_layouts(data: Sequence[Path], layouts: Sequence[DataLayout[Any]]) -> str:
    """The end of an error about a folder that no layout recognises: those whose names are most like its own. Empty for
    anything else."""
    named = [layout for layout in layouts if layout not in (FOLDERS, TABLES)]
    if len(data) != 1 or not data[0].is_dir() or not named or _is_recognised(data[0], layouts):
        return ""
    inside = islice((path for depth in ("*", "*/*", "*/*/*") for path in data[0].glob(depth)), _LOOKED_AT)
    own = {word for path in inside for word in _words(path.name)}
    shared = {layout.name: len(own & _words(layout.files)) for layout in named}
    nearest = sorted(named, key=lambda layout: -shared[layout.name])[:_NEAREST]
    forms = "; ".join(f"{layout.name}: {layout.files}" for layout in nearest)
    return f" (layouts that are read: {', '.join(shared)}. The nearest: {forms})"


def _is_recognised(folder: Path, layouts: Sequence[DataLayout[Any]]) -> bool:
    try:
        return any(layout.parts(folder) is not None or layout.read(folder) is not None for layout in layouts)
    except UserError:  # something is missing of a layout
        return True


def _words(names: str) -> set[str]:
    return {*re.findall(r"[a-z]+", names.lower())}
