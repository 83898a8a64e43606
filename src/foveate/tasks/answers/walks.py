"""Walks of a model on maps: where it goes, what it looks at meanwhile, and how often it arrives."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import torch

from foveate.data.worlds.maps import ACTIONS, MapWorld, Pose, Sights, WalkMap, read_map
from foveate.data.worlds.routes import Route, RouteProcessor
from foveate.decoding.acting import Episode, act, stack_observations
from foveate.decoding.beam import check_width
from foveate.errors import UserError, one_line
from foveate.sight import Sight, look
from foveate.tasks.former.predictor import Predictor

MOST_STEPS = 50
"""Actions of the longest walk."""

_NOTHING = Sights((), (), ())
"""What a walk needs that is only repeated."""

BATCH = 256
"""Instructions that are followed together."""


@dataclass
class Walking:
    """Where to walk, and how actions are searched."""

    map: Path | None = None
    """The map to walk on: an XML file of nodes and edges."""
    at: str | None = None
    """Where to start: x,y,heading, such as 3,5,180 (0 up, 90 right, 180 down, 270 left)."""
    width: int = 1
    """Width of the beam search; 1 is greedy search."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_width(self.width)

    def start(self) -> tuple[WalkMap, Pose]:
        """The map and the first pose. Raises UserError where they are missing or do not fit."""
        if self.map is None or self.at is None:
            raise UserError("where to walk? Give a map and a first pose: --map FILE.xml --at X,Y,HEADING")
        walk_map = read_map(self.map)
        try:
            pose = [int(number) for number in self.at.split(",")]
        except ValueError:
            raise UserError(f"--at is {self.at}, but must be x,y,heading, such as 3,5,180") from None
        return walk_map, walk_map.check(pose)


@dataclass
class Walked:
    """Where a model went."""

    instruction: str
    actions: list[int]
    path: list[Pose]
    probability: float
    """Of all actions together."""
    walk_map: WalkMap

    @property
    def line(self) -> str:
        """The actions, the last pose and the probability, with tabs between them."""
        x, y, heading = self.path[-1]
        return f"{' '.join(ACTIONS[one] for one in self.actions)}\t{x},{y},{heading}\t{self.probability:.3f}"


def look_at_words(predictor: Predictor, walked: Walked, sites: Sequence[str] | None = None) -> tuple[Sight, list[str]]:
    """A sight of the model at all steps of a walk, and the names of the actions."""
    processor: RouteProcessor = predictor.processor
    seen = []
    for pose, _ in zip(walked.path, walked.actions, strict=False):
        seen.append(MapWorld(walked.walk_map, pose, processor.sights).observe())
    features = stack_observations(seen, predictor.device)["features"]
    inputs = processor.inputs([processor.encode(walked.instruction)])
    with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
        predictor.forward({**inputs, "features": features[None]})
    return sight, [ACTIONS[one] for one in walked.actions]


def arrivals(ends: Sequence[Pose], routes: Sequence[Route]) -> dict[str, float]:
    """In percent: walks that end in the right pose, and at the right place with any heading."""
    right = [route.path[-1] for route in routes]
    poses = sum(end == one for end, one in zip(ends, right, strict=True))
    places = sum(end[:2] == one[:2] for end, one in zip(ends, right, strict=True))
    return {"success": 100 * poses / max(len(right), 1), "right_place": 100 * places / max(len(right), 1)}


def follow(predictor: Predictor, routes: Sequence[Route], width: int) -> list[Walked]:
    """Where the model goes from the first pose of each route, by a beam search of `width`."""
    processor: RouteProcessor = predictor.processor
    found: list[Episode] = []
    for begin in range(0, len(routes), BATCH):
        group = routes[begin : begin + BATCH]
        inputs = predictor.on_device(processor.inputs([processor.encode(route.instruction) for route in group]))
        worlds = [MapWorld(route.walk_map, route.path[0], processor.sights) for route in group]
        model: Any = predictor.model
        found += act(model, inputs, worlds, MOST_STEPS, width)
    return [_walked(*both) for both in zip(routes, found, strict=True)]


def _walked(route: Route, episode: Episode) -> Walked:
    """The walk with all its poses, the first one included."""
    world = MapWorld(route.walk_map, route.path[0], _NOTHING)
    path = [world.pose]
    for action in episode.actions:
        if not world.act(action):
            path.append(world.pose)
    return Walked(one_line(route.instruction), episode.actions, path, exp(episode.log_prob), route.walk_map)
