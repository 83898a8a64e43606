"""Walking: a model follows an instruction on a map, one action after the other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.worlds.maps import ACTIONS, MapWorld, actions_between
from foveate.data.worlds.routes import Route, RouteProcessor, fit_routes, mirrored, read_routes, words_of
from foveate.decoding.beam import check_width
from foveate.tasks.answers.walks import Walked, Walking, arrivals, follow, look_at_words
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.training import Batches
from foveate.viewer.protocol import Input, LookResult


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
class OnMaps:
    """On which routes to measure, and how actions are searched."""

    only: tuple[str, ...] = ()
    """Names of the maps whose routes count; by default those that were left out in training, or all."""
    width: int = 1
    """Width of the beam search; 1 is greedy search."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_width(self.width)


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
    default_training = Training(
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

    def fit(self, train: Dataset[Route]) -> RouteProcessor:
        return fit_routes(train)

    def batches(self, train: Dataset[Route], processor: Processor[Any]) -> Batches:
        if not self.examples.mirror:
            return super().batches(train, processor)
        both = Dataset(train.name, [*train, *mirrored(train)], train.unit)
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
        return follow(predictor, routes, options.width)

    def measure(self, predictor: Predictor, examples: Sequence[Route], options: OnMaps) -> Measured:
        walks = follow(predictor, examples, options.width)
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
