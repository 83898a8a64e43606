"""What an agent learns from, recorded episodes or levels to act in, and how it acts."""

from dataclasses import dataclass
from typing import Any, Literal

from foveate.data import Splits
from foveate.data.dataset import Dataset
from foveate.data.worlds.episodes import EpisodeProcessor, Level
from foveate.data.worlds.grid_levels import ACTIONS, GridLevel, channels_of
from foveate.data.worlds.named import ROBOT
from foveate.data.worlds.routes import words_of
from foveate.data.worlds.views import Views
from foveate.decoding.beam import check_width
from foveate.errors import UserError, at_least
from foveate.tasks.former.task import Examples

LEVELS = 2000
"""Levels of an epoch of Q-learning."""

DEV, TEST, FRESH = 1_000_000, 2_000_000, 3_000_000
"""First seeds of the levels to validate and to test on, and of those that are named by their world only."""

INSTRUCTIONS = 100
"""Levels whose instructions give the words, in Q-learning."""


@dataclass
class Episodes(Examples):
    """Which episodes to imitate: a folder of .npz files, each with pixels (steps, height, width, channels) in 8 bits,
    actions, and a text, instruction. Actions are whole numbers (steps), or movements (steps, n) of n numbers from -1 to
    1."""

    objective: Literal["imitation", "q"] = "imitation"
    """Imitate recorded episodes; or act in levels of a --world and learn from the rewards, by double Q-learning."""
    views: Views = "pixels"
    """How worlds are seen: as images, levels of minigrid in colour and the robot's in colour and depth; as grey and
    depth images; or, levels of minigrid, as symbols: the kind, colour and state of each of the 7 x 7 tiles."""
    world: str | None = None
    """Q-learning: the world, such as minigrid/Empty-Random-6x6."""
    actions: int = len(ACTIONS)
    """Q-learning: choose from so many actions: left, right, forward, pick up, drop, toggle, done."""
    explore: int = 500
    """Q-learning: batches in which the share of random actions falls from 1 to 0.05."""
    discount: float = 0.95
    """Q-learning: what a reward is worth one step before it."""
    batch: int = 160
    """Steps of a batch, padding included."""
    validation_examples: int = 200
    """Levels or episodes of each validation during training."""

    def check(self) -> None:
        super().check()
        at_least(1, "explore", self.explore)
        if not 1 <= self.actions <= len(ACTIONS) or not 0 <= self.discount <= 1:
            raise UserError(f"actions must be 1 to {len(ACTIONS)} and the discount 0 to 1")
        if (self.world is None) == (self.objective == "q") or (self.world and (self.source or self.data)):
            raise UserError(
                "Q-learning takes a world and no recordings: --objective q --world minigrid/Empty-Random-6x6"
            )

        if self.world and self.world.startswith(ROBOT):
            raise UserError(f"Q-learning chooses actions from a list, and those of {self.world} are numbers")

    def levels(self) -> Splits[Dataset[Any]]:
        """Levels of the world to learn from, to validate and to test on."""
        parts = {"train": (0, LEVELS), "dev": (DEV, self.validation_examples), "test": (TEST, 500)}
        return Splits(
            *[
                Dataset(f"{self.world}.{name}", [Level(str(self.world), first + n) for n in range(count)], "levels")
                for name, (first, count) in parts.items()
            ]
        )


@dataclass
class Acting:
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


def fit_levels(levels: Dataset[Level], actions: int, views: Views = "pixels") -> EpisodeProcessor:
    """The processor with the words of some levels' instructions."""
    texts = [GridLevel(level.world, level.seed).instruction for level in levels.some(INSTRUCTIONS)]
    words = tuple(sorted({word for text in texts for word in words_of(text)}))
    return EpisodeProcessor(words, actions, channels_of(views), views)
