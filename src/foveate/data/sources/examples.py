"""Examples of data by name as files: images, sounds, walks on maps and tables of texts to try a model on."""

import shutil
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from foveate.data.images.questions import ImageQuestion
from foveate.data.sources import SOURCES, open_source
from foveate.data.worlds.maps import write_map
from foveate.data.worlds.routes import Route
from foveate.errors import UserError, at_least, unknown
from foveate.files import check_writable, written

TABLE = "examples.tsv"

COLUMNS = (("label", "text"), ("better", "worse"))
"""Fields of examples that are texts, in the order in which `foveate train` reads them."""


def write_examples(name: str, folder: Path, count: int) -> list[Path]:
    """Write the first test examples of a source: 1.png, 2.png, ... of images, 1.wav, ... of sounds, of walks 1.xml with
    a map and 1.txt with the input for `foveate look`; and a table of what is known of each. Texts are the table alone.

    Raises UserError for an unknown source, and for one with other examples.
    """
    at_least(1, "count", count)
    if name not in SOURCES:
        raise unknown("source", name, SOURCES)
    check_writable(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / TABLE).is_file():
        raise UserError(f"{folder} holds other files, which might be replaced: name another --out")
    test = open_source(name, task=SOURCES[name].tasks[0]).test
    groups = [list(same) for _, same in islice(groupby(test, _file_of), count)]
    first = groups[0][0] if groups else None
    columns = next((fields for fields in COLUMNS if all(hasattr(first, field) for field in fields)), None)
    if columns is None and not (hasattr(first, "read") or hasattr(first, "path")):
        raise UserError(f"{name}: its examples are not labelled texts, images, sounds or walks; open the cache's file")
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / TABLE
    if columns is not None:
        _write_table(table, [[getattr(example, field) for field in columns] for same in groups for example in same])
        return [table]
    paths = [_write(same[0], folder / str(number)) for number, same in enumerate(groups, 1)]
    _write_table(
        table,
        [
            [path.name, *_target_of(example).split("\t")]
            for path, same in zip(paths, groups, strict=True)
            for example in same
        ],
    )
    return paths


def _write_table(path: Path, rows: list[list[str]]) -> None:
    lines = ["\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows]
    with written(path) as table:
        table.write_text("".join(lines), encoding="utf-8")


def _file_of(example: Any) -> object:
    """Returns what distinguishes examples of one file from others: questions may be about the same image."""
    return example.image if isinstance(example, ImageQuestion) else id(example)


def _write(example: Any, place: Path) -> Path:
    if isinstance(example, Route):
        path = place.with_suffix(".xml")
        write_map(path, example.walk_map)
        with written(place.with_suffix(".txt")) as text:
            text.write_text(f"{path} {_target_of(example)}\n", encoding="utf-8")
        return path
    if hasattr(example, "path"):  # a sound, which is a file already
        path = place.with_suffix(Path(example.path).suffix)
        with written(path) as copy:
            shutil.copyfile(example.path, copy)
        return path
    path = place.with_suffix(".png")
    with written(path) as picture:
        example.read().save(picture)
    return path


def _target_of(example: Any) -> str:
    """The caption, the label or the labels of an example, or pose and instruction of a walk, in one line; a question
    and its answer with a tab between them, as `foveate train answer` reads them."""
    if isinstance(example, ImageQuestion):
        return f"{example.question}\t{example.answer}"
    if isinstance(example, Route):
        return f"{','.join(map(str, example.path[0]))} {example.instruction}"
    for field in ("captions", "label", "labels"):
        value = getattr(example, field, None)
        if value:
            return " ".join(str(value if isinstance(value, str) else ", ".join(value)).split())
    return ""
