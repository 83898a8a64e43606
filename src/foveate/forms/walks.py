"""Walks on a map: the actions that follow an instruction.

B batch    T steps    F features of what is seen    S words
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, prod
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output, Picture, count_labels
from foveate.data.dataset import Dataset, Prepared
from foveate.data.worlds.maps import ACTIONS, MapWorld, Pose, Sights, WalkMap, actions_between, read_map
from foveate.data.worlds.routes import Route, sentences_of, words_of
from foveate.decoding.acting import Episode, act
from foveate.decoding.acting_in_turn import act_in_turn
from foveate.decoding.beam import check_width
from foveate.errors import UserError
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Learned, MapRow, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.scored import ScoredForm
from foveate.forms.world import PreparedDirections, words_read
from foveate.metrics.acting import arrivals

MOST_STEPS = 50
"""Actions of the longest walk for one instruction, or one sentence of it."""

LEAST_PARAGRAPHS = 0.05
"""Share of instructions of several sentences from which on a model has learned to follow them as a whole."""

Follow = Literal["auto", "sentences", "whole"]
"""How an instruction of several sentences is followed."""

_NOTHING = Sights((), (), ())
"""What a walk needs that is only repeated."""


@dataclass(kw_only=True)
class ActionSearch:
    """How actions are searched."""

    width: int = 1
    """Width of the beam search; 1 is greedy search."""
    ensemble: tuple[Path, ...] = ()
    """Runs that walk with this one: each action has the mean of the probabilities that all of them give it."""
    follow: Follow = "auto"
    """Follow an instruction sentence by sentence, each from where the last one ended, or as a whole. `auto` chooses
    `sentences` where the model learned from single sentences."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_width(self.width)


@dataclass(kw_only=True)
class WalkOptions(ActionSearch):
    """Where to walk, and how actions are searched."""

    map: Path | None = None
    """The map to walk on: an XML file of nodes and edges."""
    at: str | None = None
    """Where to start: x,y,heading, such as 3,5,180 (0 up, 90 right, 180 down, 270 left)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        self.start()

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


@dataclass(kw_only=True)
class MapOptions(ActionSearch):
    """On which routes to measure, and how actions are searched."""

    only: tuple[str, ...] = ()
    """Names of the maps whose routes count; by default those that were left out in training, or all."""


@dataclass(kw_only=True)
class Walked(Answer):
    """Where a model went."""

    actions: list[int]
    path: list[Pose]
    """All poses, the first one included."""
    probability: float
    """Of all actions together."""
    words: list[str] = field(repr=False)
    """Those of the instruction."""
    walk_map: WalkMap = field(repr=False)
    sights: Sights = field(repr=False)
    sentences: list["Walked"] = field(default_factory=list, repr=False)
    """The walk for each sentence, where they were followed one by one."""

    @property
    def names(self) -> list[str]:
        """The names of the actions."""
        return [ACTIONS[one] for one in self.actions]

    @property
    def cells(self) -> list[str]:
        """The actions, the last pose and the probability."""
        x, y, heading = self.path[-1]
        return [" ".join(self.names), f"{x},{y},{heading}", f"{self.probability:.3f}"]

    def json_values(self) -> dict[str, Any]:
        """The names of the actions, the poses and the probability."""
        return {"actions": self.names, "path": [list(pose) for pose in self.path], "probability": self.probability}


@dataclass
class MapActions(ScoredForm, OutputForm):
    """The actions of a walk: inputs `features` (B, T, F), what is seen before each, and targets `labels` (B, T)."""

    options: ClassVar[type[Any]] = WalkOptions
    eval_options: ClassVar[type[Any]] = MapOptions
    metric: ClassVar[str] = "success"

    sights: Learned[Sights] = field(default_factory=lambda: _NOTHING)
    """What can be told apart on maps."""
    paragraphs: Learned[bool] = True
    """Whether it learned from instructions of several sentences."""

    def learn(self, train: Dataset[Route], reads: Any, architecture: Any) -> "MapActions":
        """With all that can be seen on the maps."""
        maps = {id(route.walk_map): route.walk_map for route in train}
        several = sum(len(sentences_of(words_of(route.instruction))) > 1 for route in train)
        return MapActions(Sights.of([*maps.values()]), several >= LEAST_PARAGRAPHS * len(train))

    def look_options(self) -> WalkOptions:
        """A look shows one reading, that of the whole instruction."""
        return WalkOptions(follow="whole")

    def sizes(self) -> dict[str, int]:
        return {"features": self.sights.size, "actions": len(ACTIONS)}

    def prepare_all(self, dataset: Dataset[Route], numbers: Sequence[int]) -> Prepared:
        known: dict[tuple[int, Pose], np.ndarray] = {}
        return Prepared([[self._prepared(dataset[number], known)] for number in numbers], numbers)

    def _prepared(self, route: Route, known: dict[tuple[int, Pose], np.ndarray]) -> tuple[np.ndarray, list[int]]:
        """What is seen at each step (T, F), and the actions; `known` collects what is seen at each pose of each map."""
        actions, seen = actions_between(route.path, route.walk_map), []
        world = MapWorld(route.walk_map, route.path[0], self.sights)
        for action in actions:
            here = id(route.walk_map), world.pose
            if here not in known:
                known[here] = world.observe()["features"]
            seen.append(known[here])
            world.act(action)
        return np.stack(seen), actions

    def tensors(
        self,
        prepared: Sequence[tuple[np.ndarray, list[int]]],
        changes: Changes,
        generator: np.random.Generator | None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        longest = max(len(actions) for _, actions in prepared)
        features = torch.zeros(len(prepared), longest, self.sights.size)
        labels = torch.full((len(prepared), longest), IGNORE)
        for row, (seen, actions) in enumerate(prepared):
            features[row, : len(actions)] = torch.from_numpy(seen)
            labels[row, : len(actions)] = torch.tensor(actions)
        return {"features": features}, {"labels": labels}, count_labels(labels)

    def decide(
        self, model: Any, inputs: dict[str, Tensor], prepared: Sequence[PreparedDirections], options: Any
    ) -> list[Walked]:
        """Where the model goes from the first pose of each route, or from where the options say."""
        start = cache(lambda: options.start())
        places = [start() if one.route is None else (one.route.walk_map, one.route.path[0]) for one in prepared]
        worlds = [MapWorld(walk_map, pose, self.sights) for walk_map, pose in places]
        if options.follow == "sentences" or (options.follow == "auto" and not self.paragraphs):
            return self._sentence_by_sentence(model, next(iter(inputs.values())).device, prepared, worlds, options)
        episodes = act(model, inputs, worlds, MOST_STEPS, options.width)
        return [
            self._walked(one.words, walk_map, pose, episode)
            for one, (walk_map, pose), episode in zip(prepared, places, episodes, strict=True)
        ]

    def _sentence_by_sentence(
        self,
        model: Any,
        device: torch.device,
        prepared: Sequence[PreparedDirections],
        worlds: Sequence[MapWorld],
        options: Any,
    ) -> list[Walked]:
        """Where the model goes for the sentences of each instruction, followed one after the other."""
        sentences = [one.sentences() for one in prepared]
        read = lambda some: {name: value.to(device) for name, value in words_read(some).items()}  # noqa: E731
        found = act_in_turn(model, sentences, read, worlds, lambda world: world.pose, MOST_STEPS, options.width)
        joined = []
        for own, world, episodes in zip(sentences, worlds, found, strict=True):
            walks: list[Walked] = []
            for sentence, episode in zip(own, episodes, strict=True):
                pose = walks[-1].path[-1] if walks else world.pose
                walks.append(self._walked(sentence.words, world.walk_map, pose, episode))
            joined.append(_joined(walks))
        return joined

    def _walked(self, words: list[str], walk_map: WalkMap, pose: Pose, episode: Episode) -> Walked:
        """The walk with all its poses."""
        world = MapWorld(walk_map, pose, _NOTHING)
        path = [world.pose]
        for action in episode.actions:
            if not world.act(action):
                path.append(world.pose)
        return Walked(
            actions=episode.actions,
            path=path,
            probability=exp(episode.log_prob),
            words=words,
            walk_map=walk_map,
            sights=self.sights,
        )

    def metrics(self, answers: Sequence[Walked], examples: Sequence[Route]) -> dict[str, float]:
        return arrivals([walk.path[-1] for walk in answers], [route.path[-1] for route in examples])

    def baselines(
        self, reads: Any, examples: Sequence[Route], train: Callable[[], Dataset[Route]]
    ) -> dict[str, dict[str, float]]:
        """Doing nothing, and always the actions that most routes to learn from have."""
        counts = Counter(tuple(actions_between(one.path, one.walk_map)) for one in train() if len(one.path) > 1)
        usual = counts.most_common(1)[0][0]
        ends, right = [], [route.path[-1] for route in examples]
        for route in examples:
            world = MapWorld(route.walk_map, route.path[0], self.sights)
            for action in usual:
                world.act(action)
            ends.append(world.pose)
        return {
            "staying": arrivals([route.path[0] for route in examples], right),
            f"always {' '.join(ACTIONS[one] for one in usual)}": arrivals(ends, right),
        }

    def teach(self, answer: Walked) -> dict[str, Tensor]:
        poses = answer.path[: len(answer.actions)]
        seen = [self.sights.features(answer.walk_map, pose) for pose in poses]
        return {"features": torch.from_numpy(np.stack(seen))[None]}

    def scored_labels(self, output: Output, answer: Walked) -> Tensor:
        return torch.tensor([answer.actions])

    def scored_answer(self, labels: Tensor, answer: Walked) -> str:
        return " ".join(answer.names)

    def axis(self, answer: Walked) -> DecoderNames:
        names = token_names(answer.names)
        return DecoderNames(names, names, "", len(answer.names))

    def rows(self, sight: Any, model: nn.Module, answer: Walked, before: int) -> list[MapRow]:
        """The words that each action attended to."""
        if not sight.sites:
            return []
        weights = sight[sight.sites[-1]].weights()[0, 0].cpu()
        return [MapRow(name, of) for name, of in zip(answer.names, weights, strict=True)]

    def draw(self, answer: Walked, value: Any, rows: Sequence[MapRow], grid: GridFinder) -> Picture:
        """The map with the path, and the words that each action attended to."""
        from foveate.viewer.map_walk import draw  # imports matplotlib, which takes a while

        walk_map, weights = answer.walk_map, np.stack([np.asarray(row.weights) for row in rows])
        halls = [(place, hall.end, hall.floor) for place, ends in walk_map.halls.items() for hall in ends.values()]
        return draw(halls, walk_map.items, answer.path, answer.words, [row.name for row in rows], weights)


def _joined(walks: Sequence[Walked]) -> Walked:
    """The walks for the sentences of an instruction as one."""
    return replace(
        walks[0],
        actions=[action for walk in walks for action in walk.actions],
        path=[*walks[0].path, *(pose for walk in walks[1:] for pose in walk.path[1:])],
        probability=prod(walk.probability for walk in walks),
        words=[word for walk in walks for word in walk.words],
        sentences=[*walks],
    )
