"""What lies in a folder that a user names: files, a folder for each class, and folders of splits."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from foveate.errors import UserError
from foveate.files import is_file, utf8

LITTER = ("__MACOSX",)
"""Folders that programs leave behind, beside all whose names begin with a dot."""

TRAIN, DEV, TEST = ("train", "training"), ("val", "valid", "validation", "dev"), ("test", "testing")
"""What people call the folders of splits."""


def is_litter(name: str) -> bool:
    """Whether a file or a folder is hidden, or left behind by a program."""
    return name.startswith(".") or name in LITTER


def files_below(folder: Path, endings: Iterable[str]) -> list[Path]:
    """The files in a folder and its folders whose names end so, in any letter case, in alphabetical order.

    Hidden files and folders are left out, and links to folders are not followed.
    """
    ends, found = tuple(endings), []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_litter(name)]
        found += [Path(place) / name for name in names if name.lower().endswith(ends) and not is_litter(name)]
    return sorted(file for file in found if file.is_file())


def folders_in(folder: Path) -> list[Path]:
    """The folders right in a folder, in alphabetical order, without hidden ones and links to folders around it."""
    return sorted(
        place
        for place in folder.iterdir()
        if place.is_dir() and not is_litter(place.name) and not _leads_up(place, folder)
    )


def _leads_up(link: Path, folder: Path) -> bool:
    return link.is_symlink() and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(link))


def class_folders(folder: Path, endings: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """The folders in a folder as labels, each with the files below it; folders without such files are left out.

    Raises UserError for a name that is not UTF-8, and for folders that may be splits or classes.
    """
    found = [(utf8(place.name), files) for place in folders_in(folder) if (files := files_below(place, endings))]
    names = {label for label, _ in found}
    if names and names <= {*TRAIN, *DEV, *TEST}:
        shown = ", ".join(sorted(names))
        raise UserError(
            f"{folder} has the folders {shown}: if they are splits, name one of them, such as {folder / min(names)}; "
            f"if they are classes, rename them"
        )
    return found


_may_be_outside: ContextVar[bool] = ContextVar("may_be_outside", default=False)


@contextmanager
def allowing_outside(allowed: bool) -> Iterator[None]:
    """Decides whether the tables that are read in the block may name files outside their folders."""
    before = _may_be_outside.set(allowed)
    try:
        yield
    finally:
        _may_be_outside.reset(before)


def listed_file(folder: Path, name: str, where: str) -> Path:
    """The file that a table names; the name counts from the folder. `where` stands for the place in messages.

    Raises UserError where there is no such file, or where it is outside the folder, by its name or through a link: a
    table of somebody else's must not choose among the user's files. `allowing_outside` allows it.
    """
    file = folder / name
    if not is_file(file):
        raise UserError(f"{where}: there is no file {file}")
    if not _may_be_outside.get() and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
        raise UserError(f"{where}: {file} is outside the folder {folder}; --allow-outside reads such files too")
    return file


IMAGE_FOLDERS = ("images", "Images", "imgs", "img", "photos")
"""The folders beside a table that hold its images, by the names that people give them."""

SOUND_FOLDERS = ("clips", "wavs", "wav", "audio", "sounds")
"""The folders beside a list that hold its sounds, by the names that people give them."""


def listed_beside(folder: Path, name: str, where: str, within: Sequence[str]) -> Path:
    """As `listed_file`, where the name may count from one of the folders `within` the folder, too."""
    place = next((part for part in ("", *within) if is_file(folder / part / name)), "")
    return listed_file(folder, str(Path(place) / name), where)


class SplitFolders(NamedTuple):
    """The folders of a dataset that was split before."""

    train: Path
    dev: Path | None
    test: Path | None


def split_folders(folder: Path) -> SplitFolders | None:
    """The folders train, val and test in a folder, by the names that people give them; None where it has others.

    One to train on must be there, and one to validate or to test on.
    """
    if not folder.is_dir():
        return None
    places = {place.name.lower(): place for place in folders_in(folder)}
    train, dev, test = (next((places[name] for name in names if name in places), None) for names in (TRAIN, DEV, TEST))
    if train is None or (dev is None and test is None) or not places.keys() <= {*TRAIN, *DEV, *TEST}:
        return None
    return SplitFolders(train, dev, test)
