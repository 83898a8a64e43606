"""An agent in worlds: what it does, how often it reaches the goal, and what random actions reach."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveate.data.worlds.actions import Action, name_action
from foveate.data.worlds.episodes import EpisodeProcessor, Level
from foveate.data.worlds.grid_levels import ACTIONS
from foveate.data.worlds.named import Scene, open_world
from foveate.decoding.acting import Episode, act
from foveate.decoding.moving import move
from foveate.errors import UserError, at_least, at_most, one_line
from foveate.files import check_place
from foveate.tasks.former.predictor import Predictor

MOST_STEPS = 500
"""Actions of the longest episode; most levels end earlier."""

MOST_EPISODES = 1_000_000
"""Levels that are measured, at most: each is a place in memory before the first is acted in."""

BATCH = 128
"""Levels that are acted in together."""


@dataclass
class Acted:
    """What an agent did in a level."""

    level: Level
    instruction: str
    actions: list[Action]
    succeeded: bool

    @property
    def names(self) -> list[str]:
        """What to write for each action."""
        return [name_action(one, ACTIONS) for one in self.actions]

    @property
    def line(self) -> str:
        """The instruction, the actions and whether the goal was reached, with tabs between them."""
        return f"{one_line(self.instruction)}\t{', '.join(self.names)}\t{self.end}"

    @property
    def end(self) -> str:
        return "reached" if self.succeeded else "not reached"


def act_in_levels(predictor: Predictor, levels: Sequence[Level], width: int, likeliest: bool) -> list[Acted]:
    """What the model does in each level. Raises UserError for a model of another world."""
    found = []
    for begin in range(0, len(levels), BATCH):
        group = levels[begin : begin + BATCH]
        worlds = [open_world(level.world, level.seed, predictor.processor.views) for level in group]
        episodes = _episodes(predictor, group[0].world, worlds, width, likeliest)
        for level, world, episode in zip(group, worlds, episodes, strict=True):
            ended: Any = episode.world
            found.append(Acted(level, world.instruction, episode.actions, ended.succeeded))
    return found


def _episodes(predictor: Predictor, name: str, worlds: Sequence[Scene], width: int, likeliest: bool) -> list[Episode]:
    processor: EpisodeProcessor = predictor.processor
    _check_world(processor, name, worlds[0])
    model: Any = predictor.model
    inputs = predictor.on_device(processor.inputs([world.instruction for world in worlds]))
    if processor.kind == "numbers":
        if width > 1:
            raise UserError("a beam search takes actions that are choices, and this agent gives numbers: leave --width")
        return move(model, inputs, worlds, MOST_STEPS)
    draws = width == 1 and not likeliest and predictor.task.examples.objective == "imitation"
    generator = torch.Generator().manual_seed(1) if draws else None
    return act(model, inputs, worlds, MOST_STEPS, width, generator)


def _check_world(processor: EpisodeProcessor, name: str, world: Scene) -> None:
    channels = len(world.observe()["pixels"])
    if not world.space.serves(processor.space) or processor.channels != channels:
        raise UserError(
            f"this agent has {processor.space} and reads images of {processor.channels} channels, "
            f"but {name} has {world.space} and images of {channels} channels"
        )


def act_at_random(level: Level, processor: EpisodeProcessor, generator: np.random.Generator) -> Acted:
    """Random actions of those that the agent has, until the level ends."""
    world, ended = open_world(level.world, level.seed, processor.views), False
    actions: list[Action] = []
    while not ended and len(actions) < MOST_STEPS:
        actions.append(processor.space.draw(generator))
        ended = world.act(actions[-1])
    return Acted(level, world.instruction, actions, world.succeeded)


def success(found: Sequence[Acted]) -> dict[str, float]:
    """The share of levels whose goal is reached, in percent, and in how many actions."""
    reached = [len(one.actions) for one in found if one.succeeded]
    return {
        "success": 100 * len(reached) / max(len(found), 1),
        "actions_when_reached": sum(reached) / len(reached) if reached else float("nan"),
    }


@dataclass
class InWorld:
    """Where to measure."""

    world: str | None = None
    """Act in new levels of this world, such as babyai/GoToLocal, instead of the test part."""
    episodes: int = 500
    """How many levels of the world."""
    likeliest: bool = False
    """Take the likeliest action at each step, instead of drawing it."""
    picture: Path | None = None
    """Also write the first episode as an animation (.gif): the level, and what the agent looked at."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "episodes", self.episodes)
        at_most(MOST_EPISODES, "episodes", self.episodes)
        if self.picture is not None:
            if self.picture.suffix.lower() != ".gif":
                raise UserError(f"{self.picture}: an episode is written as .gif")
            check_place(self.picture)
