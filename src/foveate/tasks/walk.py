"""Walking: a model follows an instruction on a map, one action after the other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from foveate.data.dataset import Dataset
from foveate.data.maps import ACTIONS, MapWorld, Pose, Sights, WalkMap, actions_between, read_map
from foveate.data.processor import Processor
from foveate.data.routes import Route, RouteProcessor, fit_routes, mirrored, read_routes, words_of
from foveate.decoding.acting import Episode, act, stack_observations
from foveate.errors import UserError, at_least, printable
from foveate.sight import Sight, look
from foveate.tasks.predictor import Measured, Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.task import Examples, Task
from foveate.training import Batches, Training
from foveate.viewer.protocol import Input, LookResult

MOST_STEPS = 50
"""Actions of the longest walk."""

_NOTHING = Sights((), (), ())
"""What a walk needs that is only repeated."""

BATCH = 256
"""Instructions that are followed together."""


@dataclass
class Routes(Examples):
    """Which routes to learn from: a JSON file, a list of {"instruction": text, "map": file, "path": [[x, y, heading],
    ...]}, or an XML file as the SAIL corpus has it."""

    batch: int = 600
    """Words and actions of a batch, padding included."""
    leave_out: tuple[str, ...] = ()
    """Names of maps whose routes are not learned from, to measure on them later."""
    mirror: bool = False
    """Learn from each route in a mirror too: left and right exchanged on the map, in the path, and as words of the
    instruction, which must be English."""


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
        at_least(1, "width", self.width)

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
class OnMaps:
    """On which routes to measure, and how actions are searched."""

    only: tuple[str, ...] = ()
    """Names of the maps whose routes count; by default those that were left out in training, or all."""
    width: int = 1
    """Width of the beam search; 1 is greedy search."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "width", self.width)


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


@dataclass
class Walk(Task[Architecture]):
    """Train a model that follows instructions on a map.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "walk"
    unit = "actions"
    files = "ROUTES"
    metric = "success"
    processor = RouteProcessor
    options = Walking
    usual = Training(
        usual_epochs=40,
        learning_rate=2e-3,
        schedule="cosine",
        usual_warmup=100,
        label_smoothing=0.05,
        validate_every=200,
    )

    examples: Annotated[Routes, tyro.conf.arg(name="")] = field(default_factory=Routes)
    model: str = "walker"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/walk")
    """Folder for the trained model; a training that it holds is resumed."""

    @classmethod
    def eval_options(cls, recipe: Any, where: str) -> OnMaps:
        return OnMaps()

    def read(self, paths: Sequence[Path]) -> Dataset[Route]:
        return read_routes(paths, self.examples.leave_out)

    def fit(self, learn: Dataset[Route]) -> RouteProcessor:
        return fit_routes(learn)

    def batches(self, learn: Dataset[Route], processor: Processor[Any]) -> Batches:
        if not self.examples.mirror:
            return super().batches(learn, processor)
        both = Dataset(learn.name, [*learn, *mirrored(learn)], learn.unit)
        return super().batches(both, processor)

    def examples_to_measure(self, data: Sequence[Path], options: OnMaps) -> Dataset[Any]:
        """A user's routes, by default those on the maps that were left out in training."""
        if not data:
            return super().examples_to_measure(data, options)
        return read_routes(data, only=options.only or self.examples.leave_out)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Walking) -> list[Walked]:
        """The walk for each instruction, each from the same start."""
        options.check()
        walk_map, pose = options.start()
        routes = [Route("", text, walk_map, (pose,)) for text in texts]
        return [_walked(*both) for both in zip(routes, _follow(predictor, routes, options.width), strict=True)]

    def measure(self, predictor: Predictor, examples: Sequence[Route], options: OnMaps) -> Measured:
        walks = [_walked(*both) for both in zip(examples, _follow(predictor, examples, options.width), strict=True)]
        return Measured([walk.line for walk in walks], arrivals([walk.path[-1] for walk in walks], examples))

    def baselines(
        self, predictor: Predictor, examples: Sequence[Route], options: OnMaps
    ) -> dict[str, dict[str, float]]:
        """Doing nothing, and always the actions that most routes to learn from have."""
        chosen = self.examples
        learned = self.open_source(chosen.source).train if chosen.source else self.read(chosen.data)
        counts = Counter(tuple(actions_between(one.path, one.walk_map)) for one in learned if len(one.path) > 1)
        usual = counts.most_common(1)[0][0]
        ends = []
        for route in examples:
            world = MapWorld(route.walk_map, route.path[0], predictor.processor.sights)
            for action in usual:
                world.act(action)
            ends.append(world.pose)
        return {
            "staying": arrivals([route.path[0] for route in examples], examples),
            f"always {' '.join(ACTIONS[one] for one in usual)}": arrivals(ends, examples),
        }

    def picture(self, predictor: Predictor, prediction: Walked) -> Any:
        """The map with the path, and the words that each action attended to."""
        from foveate.viewer.map_walk import draw

        sight, actions = look_at_words(predictor, prediction)
        if not sight.sites:
            return None
        walk_map, words = prediction.walk_map, words_of(prediction.instruction) or ["[UNKNOWN]"]
        weights = sight[sight.sites[-1]].weights()[0, 0].cpu().numpy()
        halls = [(place, hall.end, hall.floor) for place, ends in walk_map.halls.items() for hall in ends.values()]
        return draw(halls, walk_map.items, prediction.path, words, actions, weights)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.worlds import look_at_walk

        return look_at_walk(predictor, given, max_length, sites)


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


def _follow(predictor: Predictor, routes: Sequence[Route], width: int) -> list[Episode]:
    """What the model does from the first pose of each route."""
    processor: RouteProcessor = predictor.processor
    found: list[Episode] = []
    for begin in range(0, len(routes), BATCH):
        group = routes[begin : begin + BATCH]
        inputs = predictor.on_device(processor.inputs([processor.encode(route.instruction) for route in group]))
        worlds = [MapWorld(route.walk_map, route.path[0], processor.sights) for route in group]
        model: Any = predictor.model
        found += act(model, inputs, worlds, MOST_STEPS, width)
    return found


def _walked(route: Route, episode: Episode) -> Walked:
    """The walk with all its poses, the first one included."""
    world = MapWorld(route.walk_map, route.path[0], _NOTHING)
    path = [world.pose]
    for action in episode.actions:
        if not world.act(action):
            path.append(world.pose)
    return Walked(printable(route.instruction), episode.actions, path, exp(episode.log_prob), route.walk_map)
