"""Worlds that an agent sees, by their names: levels of minigrid and BabyAI, and the robot of panda-gym."""

from typing import Protocol

import numpy as np

from foveate.contracts import World
from foveate.data.worlds.actions import ActionSpace
from foveate.data.worlds.grid_levels import GridLevel
from foveate.data.worlds.panda import PandaWorld
from foveate.data.worlds.views import Views

ROBOT = "panda/"
"""What the names of the robot's worlds begin with."""


class VisualWorld(World, Protocol):
    """A world that is seen as images, has a goal and can be drawn."""

    @property
    def instruction(self) -> str:
        """What to do; "" where there is one thing to do alone."""

    @property
    def space(self) -> ActionSpace:
        """What can be done."""

    @property
    def succeeded(self) -> bool:
        """Whether the last action reached the goal."""

    def view(self) -> np.ndarray:
        """What the agent sees now, in colour (h, w, 3) in 8 bits, whatever `observe` gives to the model."""

    def picture(self) -> np.ndarray:
        """The whole world (h, w, 3) in 8 bits."""


def open_world(name: str, seed: int, views: Views = "pixels") -> VisualWorld:
    """The world of this name as the seed lays it out. Raises UserError for one that is unknown or not installed."""
    return PandaWorld(name, seed, views) if name.startswith(ROBOT) else GridLevel(name, seed, views)
