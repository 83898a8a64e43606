"""Instructions on random maps of halls, with the paths that follow them: to learn to walk without any files."""

import random
from collections.abc import Callable

from foveate.data.dataset import Dataset
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.worlds.maps import AHEAD, FORWARD, LEFT, RIGHT, MapWorld, Pose, Sights, WalkMap, make_map
from foveate.data.worlds.routes import Route

FLOORS = ("blue", "brick", "grass", "gravel", "wood", "yellow")
WALLS = ("butterfly", "fish", "tower")
ITEMS = ("barstool", "chair", "easel", "hatrack", "lamp", "sofa")

SIDE = 5
"""Places in a row or column of a map, at most."""

COUNTS = {"train": (60, 60), "dev": (5, 60), "test": (10, 50)}
"""Maps of each part, and routes on each map."""

Part = tuple[str, list[int]]
"""What an instruction says, and the actions that do it."""


def open_halls(before_fetch: BeforeFetch) -> Splits[Dataset[Route]]:
    """Routes to train on, and routes on other maps to validate and to test on. Nothing is fetched."""
    parts = []
    for seed, (part, (maps, routes)) in enumerate(COUNTS.items()):
        generator = random.Random(seed)
        found = []
        for number in range(maps):
            walk_map = random_map(f"{part}-{number + 1}", generator)
            found += [random_route(f"{walk_map.name}, route {n + 1}", walk_map, generator) for n in range(routes)]
        parts.append(Dataset(f"halls.{part}", found, "routes", [f"on {maps} maps"]))
    return Splits(*parts)


def random_map(name: str, generator: random.Random) -> WalkMap:
    """A map whose places are joined, with one floor for each row and column, and an item at one place in three."""
    places = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    rows, columns = ([generator.choice(FLOORS) for _ in range(SIDE)] for _ in range(2))
    edges, reached = [], {generator.choice(places)}
    while len(reached) < len(places):
        x, y = generator.choice(sorted(reached))
        dx, dy = generator.choice([*AHEAD.values()])
        other = x + dx, y + dy
        if other in places and (other not in reached or generator.random() < 0.05):
            floor = rows[y] if dx else columns[x]
            edges.append(((x, y), other, floor, WALLS[min(2, (x + y) * 3 // (2 * SIDE - 1))]))
            reached.add(other)
    return make_map(name, {place: _item(generator) for place in places}, edges)


def _item(generator: random.Random) -> str:
    return generator.choice(ITEMS) if generator.random() < 1 / 3 else ""


def random_route(place: str, walk_map: WalkMap, generator: random.Random) -> Route:
    """An instruction of one to three parts, and the poses of the walk that follows it."""
    x, y = generator.choice(sorted(walk_map.items))
    world = MapWorld(walk_map, (x, y, generator.choice([*AHEAD])), Sights((), (), ()))
    path, sentences = [world.pose], []
    for _ in range(generator.choice((1, 1, 2, 3))):
        options = [part for kind in KINDS for part in kind(walk_map, world.pose)]
        text, actions = generator.choice(options)
        sentences.append(text)
        for action in actions:
            world.act(action)
            path.append(world.pose)
    return Route(place, generator.choice((" and ", " , then ", " and then ")).join(sentences), walk_map, tuple(path))


def _turns(walk_map: WalkMap, pose: Pose) -> list[Part]:
    return [("turn left", [LEFT]), ("take a right", [RIGHT]), ("turn around", [RIGHT, RIGHT])]


def _steps(walk_map: WalkMap, pose: Pose) -> list[Part]:
    """Walk some steps ahead, to the end of the hall, or to an item."""
    line = list(walk_map.line(pose[:2], pose[2]))
    names = ("one step", "two steps", "three steps", "four steps")[: len(line)]
    found: list[Part] = [(f"walk forward {name}", [FORWARD] * n) for n, name in enumerate(names, 1)]
    if line:
        found.append(("go straight to the end of the hall", [FORWARD] * len(line)))
    return found + [(f"move ahead to the {item}", [FORWARD] * n) for item, n in _first_items(walk_map, pose).items()]


def _faces(walk_map: WalkMap, pose: Pose) -> list[Part]:
    """Face a floor or go to an item that is to be seen in one direction only."""
    found: list[Part] = []
    views = {turn: (*pose[:2], (pose[2] + turn) % 360) for turn in TURNS}
    floors = {turn: hall.floor for turn, view in views.items() for hall in [*walk_map.line(view[:2], view[2])][:1]}
    items = {turn: _first_items(walk_map, view) for turn, view in views.items()}
    for turn, actions in TURNS.items():
        if turn in floors and [*floors.values()].count(floors[turn]) == 1:
            found.append((f"face the {floors[turn]} floor", actions))
        for item, steps in items[turn].items():
            if sum(item in others for others in items.values()) == 1:
                found.append((f"go to the {item}", [*actions, *[FORWARD] * steps]))
    return found


def _first_items(walk_map: WalkMap, pose: Pose) -> dict[str, int]:
    """The items straight ahead, with the steps to the nearest of each."""
    found: dict[str, int] = {}
    for steps, hall in enumerate(walk_map.line(pose[:2], pose[2]), 1):
        if item := walk_map.items[hall.end]:
            found.setdefault(item, steps)
    return found


TURNS = {0: [], 90: [RIGHT], 180: [RIGHT, RIGHT], 270: [LEFT]}
"""The actions that turn by this many degrees."""

KINDS: tuple[Callable[[WalkMap, Pose], list[Part]], ...] = (_turns, _steps, _faces, _faces)

SOURCE = Source(
    name="halls",
    tasks=("walk",),
    about="4,400 instructions on 75 random maps, with their paths; made on this machine",
    size="0 MB, nothing is fetched",
    licence="none needed",
    open=open_halls,
)
