"""Maps of halls to walk in, read from XML as the SAIL corpus has them (MacMahon et al. 2006), and the worlds they make.

A place is (x, y) with y growing downwards, a pose (x, y, heading); headings are degrees clockwise from up: 0, 90, 180,
270.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from foveate.errors import UserError
from foveate.files import written
from foveate.xml_files import read_xml

Place = tuple[int, int]
Pose = tuple[int, int, int]

AHEAD = {0: (0, -1), 90: (1, 0), 180: (0, 1), 270: (-1, 0)}
"""What a step changes in x and y, by heading."""

ACTIONS = ("forward", "left", "right", "stop")
FORWARD, LEFT, RIGHT, STOP = range(4)

LARGEST = 4_000_000
"""Bytes of the largest map that is read."""

MOST_PLACES = 1_000
"""Places of the largest map: from each, all halls ahead are looked along."""

MOST_KINDS = 100
"""Floors, walls or items that can be distinguished, at most: each is a number of all that is seen."""


@dataclass(frozen=True)
class Hall:
    """The part of a hall between two places."""

    end: Place
    floor: str
    wall: str


@dataclass(frozen=True)
class WalkMap:
    """Places, the items that stand there, and the halls between them."""

    name: str
    items: dict[Place, str]
    """The item at each place; an empty text where none is."""
    halls: dict[Place, dict[int, Hall]] = field(repr=False)
    """The hall that leads away from each place, by heading."""

    def line(self, place: Place, heading: int) -> Iterator[Hall]:
        """The halls straight ahead, to the end of sight."""
        while hall := self.halls.get(place, {}).get(heading):
            yield hall
            place = hall.end

    @cached_property
    def content(self) -> str:
        """All of the map as text."""
        return f"{sorted(self.items.items())} {sorted((place, *one.items()) for place, one in self.halls.items())}"

    def check(self, pose: Sequence[int]) -> Pose:
        """The pose if it is on the map. Raises UserError otherwise."""
        if len(pose) != 3 or pose[2] not in AHEAD:
            raise UserError(f"{list(pose)} is not x,y,heading, such as 3,5,180 (0 up, 90 right, 180 down, 270 left)")
        if (pose[0], pose[1]) not in self.items:
            raise UserError(f"the map {self.name} has no place {pose[0]},{pose[1]}")
        return pose[0], pose[1], pose[2]


def make_map(name: str, items: dict[Place, str], edges: Sequence[tuple[Place, Place, str, str]]) -> WalkMap:
    """A map of places with their items, and edges of two places, a floor and a wall.

    Raises UserError for an edge between places that are unknown or not side by side.
    """
    halls: dict[Place, dict[int, Hall]] = {place: {} for place in items}
    headings = {step: heading for heading, step in AHEAD.items()}
    for one, other, floor, wall in edges:
        for begin, end in ((one, other), (other, one)):
            heading = headings.get((end[0] - begin[0], end[1] - begin[1]))
            if heading is None or begin not in items or end not in items:
                raise UserError(f"map {name}: there can be no hall from {begin} to {end}")
            halls[begin][heading] = Hall(end, floor, wall)
    return WalkMap(name, items, halls)


def read_map(path: Path) -> WalkMap:
    """The map in an XML file: `<node x= y= item=>` and `<edge node1="x,y" node2= floor= wall=>`.

    Raises UserError, one line, for a file that is missing or is not a map.
    """
    root = read_xml(path, "map", LARGEST)
    try:
        items = {(int(node.attrib["x"]), int(node.attrib["y"])): node.get("item", "") for node in root.iter("node")}
        edges = [
            (_place(edge.attrib["node1"]), _place(edge.attrib["node2"]), edge.get("floor", ""), edge.get("wall", ""))
            for edge in root.iter("edge")
        ]
    except KeyError as error:
        raise UserError(f"{path} is not a map: a node or an edge has no {error.args[0]}") from None
    except ValueError as error:
        raise UserError(f"{path} is not a map: {error or type(error).__name__}") from None
    if not items:
        raise UserError(f"{path} is not a map: it has no <node x= y=>")
    if len(items) > MOST_PLACES:
        raise UserError(f"{path} has {len(items):,} places; a map has at most {MOST_PLACES:,}")
    return make_map(root.get("name") or path.stem, items, edges)


def write_map(path: Path, walk_map: WalkMap) -> None:
    """Write a map as XML that `read_map` reads."""
    root = ElementTree.Element("map", name=walk_map.name)
    nodes, edges = ElementTree.SubElement(root, "nodes"), ElementTree.SubElement(root, "edges")
    for (x, y), item in sorted(walk_map.items.items()):
        ElementTree.SubElement(nodes, "node", x=str(x), y=str(y), item=item)
    for one, halls in sorted(walk_map.halls.items()):
        for hall in halls.values():
            if one < hall.end:  # a hall leads both ways
                ends = {"node1": f"{one[0]},{one[1]}", "node2": f"{hall.end[0]},{hall.end[1]}"}
                ElementTree.SubElement(edges, "edge", {**ends, "floor": hall.floor, "wall": hall.wall})
    ElementTree.indent(root)
    with written(path) as unfinished:
        ElementTree.ElementTree(root).write(unfinished, encoding="utf-8", xml_declaration=True)


def _place(text: str) -> Place:
    x, y = text.split(",")
    return int(x), int(y)


def actions_between(path: Sequence[Pose], walk_map: WalkMap) -> list[int]:
    """The actions that lead through the poses of a path, STOP included. Raises UserError where none can."""
    actions = []
    for pose, following in pairwise(path):
        turn = (following[2] - pose[2]) % 360
        hall = walk_map.halls[pose[:2]].get(pose[2])
        if following[:2] == pose[:2]:
            actions += {0: [], 90: [RIGHT], 180: [RIGHT, RIGHT], 270: [LEFT]}[turn]
        elif hall is not None and hall.end == following[:2] and not turn:
            actions.append(FORWARD)
        else:
            raise UserError(f"no action leads from {pose} to {following} on the map {walk_map.name}")
    return [*actions, STOP]


@dataclass
class Sights:
    """The things that are distinguished on maps, and how they become numbers."""

    floors: tuple[str, ...]
    walls: tuple[str, ...]
    items: tuple[str, ...]

    @classmethod
    def of(cls, maps: Sequence[WalkMap]) -> "Sights":
        """All floors, walls and items of some maps. Raises UserError where there are too many."""
        halls = [hall for one in maps for ends in one.halls.values() for hall in ends.values()]
        items = {item for one in maps for item in one.items.values()}
        kinds = {hall.floor for hall in halls}, {hall.wall for hall in halls}, items
        for name, kind in zip(("floors", "walls", "items"), kinds, strict=True):
            if len(kind) > MOST_KINDS:
                raise UserError(f"the maps have {len(kind):,} different {name}, but can have at most {MOST_KINDS}")
        return cls(*(tuple(sorted(kind - {""})) for kind in kinds))

    @property
    def size(self) -> int:
        return len(self.items) + 4 * (len(self.floors) + len(self.walls) + len(self.items) + 1)

    def features(self, walk_map: WalkMap, pose: Pose) -> np.ndarray:
        """Returns what is seen at a pose (F,): the item here, and ahead, right, behind and left the floor and the wall
        of the next hall, all items in the line of sight, and whether there is no hall."""
        parts = [_mark(self.items, [walk_map.items[pose[:2]]])]
        for turn in (0, 90, 180, 270):
            line = list(walk_map.line(pose[:2], (pose[2] + turn) % 360))
            parts += [
                _mark(self.floors, [hall.floor for hall in line[:1]]),
                _mark(self.walls, [hall.wall for hall in line[:1]]),
                _mark(self.items, [walk_map.items[hall.end] for hall in line]),
                np.array([not line], np.float32),
            ]
        return np.concatenate(parts)


def _mark(names: Sequence[str], seen: Sequence[str]) -> np.ndarray:
    return np.array([name in seen for name in names], np.float32)


@dataclass
class MapWorld:
    """A walker on a map; a `foveate.contracts.World`. A step where no hall leads ahead changes nothing."""

    walk_map: WalkMap
    pose: Pose
    sights: Sights

    def observe(self) -> dict[str, np.ndarray]:
        return {"features": self.sights.features(self.walk_map, self.pose)}

    def act(self, action: int) -> bool:
        x, y, heading = self.pose
        if action == FORWARD:
            if hall := self.walk_map.halls[x, y].get(heading):
                self.pose = (*hall.end, heading)
        elif action != STOP:
            self.pose = x, y, (heading + (90 if action == RIGHT else 270)) % 360
        return action == STOP

    def copy(self) -> "MapWorld":
        return MapWorld(self.walk_map, self.pose, self.sights)
