"""Instructions with the paths that follow them on a map, and how they become tensors."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from foveate.config import from_dict
from foveate.data.dataset import Dataset, Note
from foveate.data.folders import listed_file
from foveate.data.text.files import Paths, as_paths
from foveate.data.text.scripts import words_and_signs
from foveate.data.worlds.maps import Pose, WalkMap, actions_between, read_map
from foveate.errors import UserError
from foveate.files import read_json_value
from foveate.limits import TABLE
from foveate.xml_files import read_xml


@dataclass(frozen=True)
class Route:
    """An instruction and the path that follows it, from the first pose to the last."""

    place: str
    instruction: str
    walk_map: WalkMap
    path: tuple[Pose, ...]

    def content(self) -> bytes:
        return f"{self.instruction}\0{self.walk_map.content}\0{self.path}".encode()


def read_routes(paths: Paths, leave_out: Sequence[str] = (), only: Sequence[str] = ()) -> Dataset[Route]:
    """Routes of files: JSON, a list of {"instruction": text, "map": file, "path": [[x, y, heading], ...]}, or XML as
    the SAIL corpus has it, with `maps/map-NAME.xml` beside it.

    `leave_out` and `only` choose by names of maps. A path without any heading, or that no actions lead through, is left
    out; a first pose without a heading is skipped. Raises UserError for anything else.
    """
    paths = as_paths(paths)
    maps, found, without = cache(read_map), [], 0
    problems: list[UserError] = []
    for file in paths:
        for place, instruction, walk_map, poses in _rows(file, maps):
            if walk_map.name in leave_out or (only and walk_map.name not in only):
                continue
            without += not poses
            try:
                if poses:
                    found.append(Route(place, instruction, walk_map, _checked(place, poses, walk_map)))
            except UserError as error:
                problems.append(error)
    if problems and not found:
        raise problems[0]
    if not found:
        raise UserError(
            f"{', '.join(map(str, paths)) or 'no file'} has no routes" + (" on these maps" if leave_out or only else "")
        )
    notes: list[Note] = [_count_by_map]
    notes += [f"{without} without a heading left out"] * bool(without)
    notes += [f"{len(problems)} left out, the first because of {problems[0]}"] if problems else []
    return Dataset(", ".join(file.name for file in paths), found, "routes", notes)


def _rows(file: Path, maps: Callable[[Path], WalkMap]) -> Iterator[tuple[str, str, WalkMap, list[Any]]]:
    """The place, instruction, map and poses of each route of a file, without a first pose that has no heading.

    Raises UserError for a file without routes.
    """
    if file.is_dir():
        raise UserError(f"{file} is a folder: name the file of routes in it, such as {file / 'routes.json'}")
    reader = _of_json if file.suffix.lower() == ".json" else _of_xml
    try:
        for place, instruction, map_path, path in reader(file):
            poses = [pose for number, pose in enumerate(path) if number or pose[2] != -1]
            yield place, instruction, maps(map_path), poses
    except (KeyError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{file} has no routes: {error or type(error).__name__}") from None
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None


def mirrored(routes: Dataset[Route]) -> Dataset[Route]:
    """The routes in a mirror: left and right are exchanged on the maps, in the paths and in English instructions."""
    maps = cache(lambda number: _mirror_map(known[number]))
    known = {id(route.walk_map): route.walk_map for route in routes}
    found = [
        Route(
            f"{route.place}, mirrored",
            _SIDES.sub(lambda side: _EXCHANGED[side[0].lower()], route.instruction),
            maps(id(route.walk_map)),
            tuple((-x, y, -heading % 360) for x, y, heading in route.path),
        )
        for route in routes
    ]
    return Dataset(f"{routes.name}, mirrored", found, routes.unit)


SENTENCE_ENDS = frozenset(".!?;")
"""Signs after which an instruction goes on with another sentence."""

_EXCHANGED = {"left": "right", "right": "left", "lefts": "rights", "rights": "lefts"}

_LETTERS_OR_DIGIT = re.compile(r"[^\d_]+|\d")

_SIDES = re.compile(r"\b(left|right)s?\b", re.IGNORECASE)


def _mirror_map(walk_map: WalkMap) -> WalkMap:
    halls = {
        (-x, y): {-heading % 360: replace(hall, end=(-hall.end[0], hall.end[1])) for heading, hall in ends.items()}
        for (x, y), ends in walk_map.halls.items()
    }
    return WalkMap(walk_map.name, {(-x, y): item for (x, y), item in walk_map.items.items()}, halls)


@dataclass
class _Route:
    """A row of a file of routes."""

    instruction: str
    map: str
    path: tuple[tuple[int, int, int], ...]


def _of_json(file: Path) -> Iterator[tuple[str, str, Path, list[Any]]]:
    rows = read_json_value(file, TABLE)
    if not isinstance(rows, list):
        raise UserError(f"{file} has no routes: it is not a list")
    for number, values in enumerate(rows, 1):
        route = from_dict(_Route, values, f"{file} has no routes: route {number}", others=True)
        yield (
            f"route {number}",
            route.instruction,
            listed_file(file.parent, route.map, f"{file}, route {number}"),
            list(route.path),
        )


def _of_xml(file: Path) -> Iterator[tuple[str, str, Path, list[Any]]]:
    for example in read_xml(file, "file of routes", TABLE).iter("example"):
        name = f"map-{example.attrib['map'].lower()}.xml"
        map_path = listed_file(file.parent / "maps", name, str(file))
        instruction = " ".join((example.findtext("instruction") or "").split())
        numbers = [int(number) for number in re.findall(r"-?\d+", example.findtext("path") or "")]
        path = [numbers[begin : begin + 3] for begin in range(0, len(numbers), 3)]
        yield f"example {example.get('id')}", instruction, map_path, path


def _checked(place: str, poses: Sequence[Sequence[int]], walk_map: WalkMap) -> tuple[Pose, ...]:
    try:
        path = tuple(walk_map.check(pose) for pose in poses)
        actions_between(path, walk_map)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    return path


def words_of(text: str) -> list[str]:
    """The words and punctuation marks of an instruction, in lower case."""
    runs = words_and_signs(text.lower())
    return [part for run in runs for part in _LETTERS_OR_DIGIT.findall(run)]


def sentences_of(words: Sequence[str]) -> list[range]:
    """The places of the words of each sentence of an instruction, without the signs that end it."""
    ends = [place for place, word in enumerate(words) if word in SENTENCE_ENDS]
    begins = [0, *(end + 1 for end in ends)]
    return [range(begin, end) for begin, end in zip(begins, [*ends, len(words)], strict=True) if begin < end]


def _count_by_map(routes: Iterable[Route]) -> str:
    counts = Counter(route.walk_map.name for route in routes)
    return ", ".join(f"{count:,} on {name}" for name, count in sorted(counts.items()))
