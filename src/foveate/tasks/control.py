"""Control: an agent acts on what it sees, learned by imitation or from rewards."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.worlds.episodes import Level, read_recordings
from foveate.data.worlds.named import ROBOT
from foveate.errors import UserError, at_least
from foveate.forms.actions import WorldActions
from foveate.forms.world import LevelName
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Examples, Task
from foveate.training import Training
from foveate.training.objectives.imitation import Imitation

LEVELS = 2000
"""Levels of an epoch of Q-learning."""

DEV, TEST = 1_000_000, 2_000_000
"""First seeds of the levels to validate and to test on."""

TESTED = 500
"""Levels to test on."""


@dataclass
class Episodes(Examples):
    """Which episodes to imitate, or in which world to learn from rewards."""

    objective: Literal["imitation", "q"] = "imitation"
    """Imitate recorded episodes; or act in levels of a --world and learn from the rewards, by double Q-learning."""
    world: str | None = None
    """Q-learning: the world, such as minigrid/Empty-Random-6x6."""
    explore: int = 500
    """Q-learning: batches in which the share of random actions falls from 1 to 0.05."""
    discount: float = 0.95
    """Q-learning: what a reward is worth one step before it."""

    def check(self) -> None:
        super().check()
        at_least(1, "explore", self.explore)
        if not 0 <= self.discount <= 1:
            raise UserError(f"discount is {self.discount:g}, but must be from 0 to 1")
        if (self.world is None) == (self.objective == "q") or (self.world and (self.source or self.data)):
            raise UserError(
                "Q-learning takes a world and no recordings: --objective q --world minigrid/Empty-Random-6x6"
            )
        if self.world and self.world.startswith(ROBOT):
            raise UserError(f"Q-learning chooses actions from a list, and those of {self.world} are numbers")


def make_levels(recipe: Recipe) -> Splits[Dataset[Any]] | None:
    """Levels of the world to learn from, to validate and to test on; None where recordings are imitated."""
    chosen = recipe.examples
    if chosen.objective == "imitation":
        return None
    parts = {"train": (0, LEVELS), "dev": (DEV, chosen.validation_examples), "test": (TEST, TESTED)}
    return Splits(
        *[
            Dataset(f"{chosen.world}.{name}", [Level(str(chosen.world), first + n) for n in range(count)], "levels")
            for name, (first, count) in parts.items()
        ]
    )


def _agent() -> type[Skill]:
    from foveate.tasks.acting.agent import Agent

    return Agent


TASK = Task(
    name="control",
    about="Train an agent that imitates recorded episodes, or learns from rewards.",
    families=("darqn", "mdarqn"),
    reads=LevelName(),
    writes=WorldActions(),
    objective=Imitation(),
    read=lambda paths, recipe: read_recordings(paths),
    generate=make_levels,
    files="FOLDER",
    layout="Your own episodes: a folder of .npz files, each with pixels (steps, height, width, channels) in 8 bits, "
    "actions, and a text, instruction. Actions are whole numbers (steps), or movements (steps, n) of n numbers from -1 "
    "to 1.",
    examples=Episodes(batch=160, validation_examples=200),
    model="darqn-tiny",
    training=Training(
        epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=100,
        validate_every=1000,
        precision="float32",
    ),
    start=AllWeights(),
    unit="actions",
    skill=_agent,
)
