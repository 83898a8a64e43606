"""What an agent does in a world that it sees: choices, or movements of several numbers.

B batch    T steps    n numbers of a movement
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from foveate.contracts import IGNORE, Output, count_labels
from foveate.data.dataset import Dataset
from foveate.data.worlds.actions import Action, ActionSpace, Kind, name_action, space_of
from foveate.data.worlds.episodes import Level, Recording
from foveate.data.worlds.grid_levels import ACTIONS
from foveate.data.worlds.named import VisualWorld, open_world
from foveate.data.worlds.views import Views
from foveate.decoding.acting import Episode, act
from foveate.decoding.beam import check_width
from foveate.decoding.moving import move
from foveate.errors import UserError, at_least, at_most
from foveate.files import check_place
from foveate.forms.answers import Answer, Failure
from foveate.forms.form import Changes, Learned, OutputForm
from foveate.forms.scored import ScoredForm
from foveate.forms.world import LevelName, PreparedLevel
from foveate.metrics.acting import agreement, success

MOST_STEPS = 500
"""Actions of the longest episode; most levels end earlier."""

MOST_EPISODES = 1_000_000
"""Levels that are measured, at most: each is a place in memory before the first is acted in."""


@dataclass
class ActOptions:
    """Which level to act in."""

    seed: int = 1
    """Lays the level out."""
    width: int = 1
    """Width of the beam search over copies of the world; 1 is none."""
    likeliest: bool = False
    """Take the likeliest action at each step. An agent that imitates choices draws it otherwise, so as not to repeat an
    action that changes nothing."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(0, "seed", self.seed)
        check_width(self.width)


@dataclass
class WorldOptions:
    """Where to measure."""

    world: str | None = None
    """Act in new levels of this world, such as babyai/GoToLocal, instead of the test part."""
    episodes: int = 500
    """How many levels of the world."""
    likeliest: bool = False
    """Take the likeliest action at each step, instead of drawing it."""
    picture: Path | None = None
    """Also write the first episode as an animation (.gif): the level, and what the agent looked at."""

    width: ClassVar[int] = 1
    seed: ClassVar[int] = 1

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "episodes", self.episodes)
        at_most(MOST_EPISODES, "episodes", self.episodes)
        if self.picture is not None:
            if self.picture.suffix.lower() != ".gif":
                raise UserError(f"{self.picture}: an episode is written as .gif")
            check_place(self.picture)


@dataclass(kw_only=True)
class LevelActions(Answer):
    """What an agent did in a level."""

    level: Level = field(repr=False)
    instruction: str
    actions: list[Action]
    succeeded: bool

    @property
    def names(self) -> list[str]:
        """What to write for each action."""
        return [name_action(one, ACTIONS) for one in self.actions]

    @property
    def cells(self) -> list[str]:
        """The instruction, the actions and whether the goal was reached."""
        return [self.instruction, ", ".join(self.names), self.end]

    @property
    def title(self) -> str:
        return self.instruction

    @property
    def end(self) -> str:
        """Whether the goal was reached, for people."""
        return "reached" if self.succeeded else "not reached"

    def json_values(self) -> dict[str, Any]:
        """The instruction, the names of the actions and whether the goal was reached."""
        return {"instruction": self.instruction, "actions": self.names, "succeeded": self.succeeded}


@dataclass(kw_only=True)
class Imitated(Answer):
    """What an agent does at each step of a recording."""

    done: np.ndarray

    @property
    def cells(self) -> list[str]:
        """The actions."""
        return [" ".join(map(str, self.done.tolist()))]


class ScoredActions(ScoredForm):
    """The choices of an episode: by default their score is the log-probability of all of them."""

    def scored_labels(self, output: Output, answer: LevelActions) -> Tensor:
        return torch.tensor([answer.actions])

    def scored_answer(self, labels: Tensor, answer: LevelActions) -> str:
        return ", ".join(answer.names)


class ActionValues(ScoredActions):
    """The same of an agent that learned from rewards: the rewards that it expects of its choices, their sum."""

    score_name = "sum of values"

    def log_probs(self, logits: Tensor) -> Tensor:
        return logits


@dataclass
class WorldActions(ScoredActions, OutputForm):
    """Actions in a world: targets are `labels` (B, T) where actions are choices, or `actions` (B, T, n)."""

    options: ClassVar[type[Any]] = ActOptions
    eval_options: ClassVar[type[Any]] = WorldOptions
    metric: ClassVar[str] = "success"

    actions: int = len(ACTIONS)
    """Q-learning: choose from so many actions: left, right, forward, pick up, drop, toggle, done."""
    count: Learned[int] = 0
    """How many choices there are, or of how many numbers a movement consists."""
    kind: Learned[Kind] = "choices"

    def check(self) -> None:
        if not 1 <= self.actions <= len(ACTIONS):
            raise UserError(f"actions is {self.actions}, but must be from 1 to {len(ACTIONS)}")

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "WorldActions":
        """With all recorded actions; those of recordings of known worlds are at least the world's."""
        found = copy(self)
        if isinstance(train[0], Level):
            found.count = self.actions
            return found
        space = space_of([action for one in train for action in one.actions])
        least = len(ACTIONS) if train[0].codes is not None and space.kind == "choices" else 1
        found.count, found.kind = max(least, space.count), space.kind
        return found

    @property
    def space(self) -> ActionSpace:
        """All actions of the agent."""
        return ActionSpace(self.kind, self.count)

    def sizes(self) -> dict[str, int]:
        return {"actions": self.count}

    def prepare(self, example: Recording) -> list[Tensor]:
        return [torch.tensor(example.actions)]

    def tensors(
        self, prepared: Sequence[Tensor], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        if self.kind == "choices":
            labels = pad_sequence(list(prepared), True, IGNORE)
            return {}, {"labels": labels}, count_labels(labels)
        lengths = torch.tensor([len(one) for one in prepared])
        return {}, {"actions": pad_sequence(list(prepared), True)}, lengths

    # -- acting

    def decide(
        self,
        model: Any,
        inputs: dict[str, Tensor],
        prepared: Sequence[PreparedLevel | Recording],
        options: ActOptions | WorldOptions,
    ) -> list[Any]:
        """What the model does at each step of recordings, the likeliest choice or its movement; or in levels."""
        recordings = [one for one in prepared if isinstance(one, Recording)]
        if not recordings:
            return self._act(model, [one for one in prepared if isinstance(one, PreparedLevel)], options)
        outputs = model(**inputs).logits.float().cpu()
        done = (outputs.argmax(-1) if self.kind == "choices" else outputs.clamp(-1, 1)).numpy()
        return [Imitated(done=own[: len(one.actions)]) for own, one in zip(done, recordings, strict=True)]

    def _act(
        self, model: Any, prepared: Sequence[PreparedLevel], options: ActOptions | WorldOptions
    ) -> list[LevelActions | Failure]:
        """What the model does in each level; a failure for a world that is unknown, or another than the agent's."""
        found: list[Any] = []
        for one in prepared:
            level = Level(one.world, options.seed if one.seed is None else one.seed)
            try:
                found.append((level, self._open(one.form, level)))
            except UserError as error:
                found.append(Failure(one.world, str(error)))
        rows = [row for row, one in enumerate(found) if not isinstance(one, Failure)]
        if not rows:
            return found
        worlds = [found[row][1] for row in rows]
        device = next(model.parameters()).device
        inputs = prepared[0].form.inputs([world.instruction for world in worlds])
        episodes = self._episodes(model, {name: part.to(device) for name, part in inputs.items()}, worlds, options)
        for row, world, episode in zip(rows, worlds, episodes, strict=True):
            ended: Any = episode.world
            level = found[row][0]
            found[row] = LevelActions(
                level=level, instruction=world.instruction, actions=episode.actions, succeeded=ended.succeeded
            )
        return found

    def _open(self, form: LevelName, level: Level) -> VisualWorld:
        """The world of a level. Raises UserError for one that is unknown, or has other actions or images."""
        world = open_world(level.world, level.seed, form.views)
        channels = len(world.observe()["pixels"])
        if not world.space.serves(self.space) or form.channels != channels:
            raise UserError(
                f"this agent has {self.space} and reads images of {form.channels} channels, "
                f"but {level.world} has {world.space} and images of {channels} channels"
            )
        return world

    def _episodes(
        self, model: Any, inputs: dict[str, Tensor], worlds: Sequence[VisualWorld], options: ActOptions | WorldOptions
    ) -> list[Episode]:
        if self.kind == "numbers":
            if options.width > 1:
                raise UserError(
                    "a beam search takes actions that are choices, and this agent gives numbers: leave --width"
                )
            return move(model, inputs, worlds, MOST_STEPS)
        draws = options.width == 1 and not options.likeliest
        generator = torch.Generator().manual_seed(1) if draws else None
        return act(model, inputs, worlds, MOST_STEPS, options.width, generator)

    # -- measuring

    def check_recordings(self, reads: LevelName, recordings: Iterable[Recording]) -> None:
        """Raise UserError for actions that the agent does not have, and for images of another kind than it reads."""
        for one in recordings:
            if not self.space.serves(space := space_of(one.actions)):
                raise UserError(f"{one.place} has {space}, but this agent has {self.space}")
        first = next(iter(recordings))  # all have its size
        if reads.views == "pixels" and (channels := first.read().shape[-1]) != reads.channels:
            raise UserError(
                f"{first.place} has images of {channels} channels, but this agent reads {reads.channels} channels"
            )

    def metrics(self, answers: Sequence[Any], examples: Sequence[Any]) -> dict[str, float]:
        """Levels: the share whose goal is reached. Recordings: the share in which every action is as recorded."""
        if isinstance(examples[0], Level):
            return reached(answers)
        return agreement(self.kind, [one.actions for one in examples], [one.done for one in answers])

    def baselines(
        self, reads: LevelName, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """Random actions, in as many levels; beside recordings, the most frequent action or the mean movement."""
        if isinstance(examples[0], Level):
            generator = np.random.default_rng(1)
            found = [act_at_random(one, self.space, reads.views, generator) for one in examples]
            return {"random actions": reached(found)}
        actions = [one.actions for one in examples]
        if self.kind == "choices":
            usual = Counter(action for own in actions for action in own).most_common(1)[0][0]
            return {
                "the most frequent action": agreement(self.kind, actions, [np.full(len(own), usual) for own in actions])
            }
        mean = np.mean([action for own in actions for action in own], 0)
        moved = [np.tile(mean, (len(own), 1)) for own in actions]
        return {"the mean action": agreement(self.kind, actions, moved)}


def act_at_random(level: Level, space: ActionSpace, views: Views, generator: np.random.Generator) -> LevelActions:
    """Random actions of a space, until the level ends."""
    world, ended = open_world(level.world, level.seed, views), False
    actions: list[Action] = []
    while not ended and len(actions) < MOST_STEPS:
        actions.append(space.draw(generator))
        ended = world.act(actions[-1])
    return LevelActions(level=level, instruction=world.instruction, actions=actions, succeeded=world.succeeded)


def reached(found: Sequence[LevelActions]) -> dict[str, float]:
    """The share of levels whose goal is reached, in percent, and in how many actions."""
    return success([one.succeeded for one in found], [len(one.actions) for one in found])
