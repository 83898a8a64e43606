"""Levels of minigrid and BabyAI as worlds (Chevalier-Boisvert et al. 2023, https://arxiv.org/abs/2306.13831).

The agent sees the 7 x 7 tiles before it, as an image of 8 pixels for each tile, or as symbols: what stands on each.
minigrid is the extra `worlds`.
"""

import contextlib
import copy
import io
import os
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from foveate.data.worlds.actions import ActionSpace
from foveate.data.worlds.views import Views, make_grey, scale_pixels
from foveate.errors import UserError, unknown

TILE = 8
"""Pixels of a tile's side."""

ACTIONS = ("left", "right", "forward", "pick up", "drop", "toggle", "done")

MOVES = 3
"""The first of the actions, which turn and move."""

SYMBOLS = (11, 6, 3)
"""How many kinds, colours and states of a tile there are."""

AGENT = (3, 6)
"""Column and row of the agent in its own view."""

NOTHING = 2
"""Kinds below this one are of tiles that are not seen, and of empty ones."""


class GridLevel:
    """One level, laid out by a seed; a `foveate.data.worlds.named.VisualWorld`."""

    space = ActionSpace("choices", len(ACTIONS))

    def __init__(self, name: str, seed: int, views: Views = "pixels") -> None:
        """`views` says how it is observed.

        Raises UserError for a name that is not a level, or where minigrid is not installed.
        """
        self.views = views
        with _silence():
            self.env = _gymnasium().make(_level_id(name), disable_env_checker=True).unwrapped
            self._seen, _ = self.env.reset(seed=seed)
        self.reward = 0.0
        """What the last action brought: above 0 where it reached the goal."""

    @property
    def instruction(self) -> str:
        return self.env.mission

    @property
    def succeeded(self) -> bool:
        """Whether the last action reached the goal."""
        return self.reward > 0

    @property
    def codes(self) -> UInt8[np.ndarray, "7 7 3"]:
        """The view by column and row: kind, colour and state of each tile."""
        return self._seen["image"]

    def observe(self) -> dict[str, np.ndarray]:
        """The view as `pixels`: (3, 56, 56) or, grey and depth, (2, 56, 56) from -1 to 1, or (20, 7, 7) of symbols."""
        return {"pixels": encode_views(self.codes[None], self.views)[0]}

    def act(self, action: int) -> bool:
        with _silence():
            self._seen, self.reward, ended, cut, _ = self.env.step(action)
        return ended or cut

    def copy(self) -> "GridLevel":
        return copy.deepcopy(self)

    def view(self) -> UInt8[np.ndarray, "56 56 3"]:
        """What the agent sees now, in colour."""
        return draw_views(self.codes[None])[0]

    def picture(self, tile: int = 24) -> np.ndarray:
        """The whole level (h, w, 3) in 8 bits, with the part that the agent sees lighter."""
        return self.env.get_frame(highlight=True, tile_size=tile)


def bot_episode(name: str, seed: int, noise: float = 0.0) -> tuple[str, UInt8[np.ndarray, "T 7 7 3"], list[int]]:
    """Returns the episode of BabyAI's bot in a level: the instruction, the views before its actions, and these.

    With `noise`, this share of its actions is replaced by random moves when they are done, so that the episode shows
    what to do where a less able agent may be (Laskey et al. 2017, https://arxiv.org/abs/1703.09327).
    Raises UserError where the level is not BabyAI's, whose instructions the bot understands.
    """
    level = GridLevel(name, seed)
    if not hasattr(level.env, "instrs"):
        raise UserError(f"{name} has no bot: only levels of BabyAI have one")
    from minigrid.utils.baby_ai_bot import BabyAIBot

    views: list[np.ndarray] = []
    actions: list[int] = []
    generator = np.random.default_rng(seed)
    done, acted = False, None
    with _silence():
        bot = BabyAIBot(level.env)
    while not done:
        with _silence():
            actions.append(int(bot.replan(acted)))
        views.append(level.codes.copy())
        acted = int(generator.integers(MOVES)) if noise and generator.random() < noise else actions[-1]
        done = level.act(acted)
    return level.instruction, np.stack(views), actions


def channels_of(views: Views) -> int:
    """The channels of encoded views."""
    return {"pixels": 3, "grey-depth": 2, "symbols": sum(SYMBOLS)}[views]


def encode_views(codes: UInt8[np.ndarray, "T 7 7 3"], views: Views) -> np.ndarray:
    """Views as a model reads them (T, c, h, w): images from -1 to 1, in colour or as grey and depth, or a 1 for the
    kind, colour and state of each tile."""
    if views == "pixels":
        return scale_pixels(draw_views(codes))
    if views == "grey-depth":
        return np.stack([make_grey(scale_pixels(draw_views(codes))), _depths(codes)], 1)
    parts = [np.eye(count, dtype=np.float32)[codes[..., place]] for place, count in enumerate(SYMBOLS)]
    return np.concatenate(parts, -1).transpose(0, 3, 2, 1)


def _depths(codes: UInt8[np.ndarray, "T 7 7 3"]) -> Float32[np.ndarray, "T 56 56"]:
    """How near to the agent that is which stands on each tile, by steps: 1 at its own tile, -1 where nothing stands."""
    columns, rows = np.indices(codes.shape[1:3])
    steps = abs(columns - AGENT[0]) + abs(rows - AGENT[1])
    depths = np.where(codes[..., 0] < NOTHING, -1, 1 - steps / steps.max()).astype(np.float32)
    return depths.transpose(0, 2, 1).repeat(TILE, 1).repeat(TILE, 2)


def draw_views(codes: UInt8[np.ndarray, "T 7 7 3"]) -> UInt8[np.ndarray, "T 56 56 3"]:
    """Views as minigrid draws them, tile by tile from a table."""
    kinds = codes.astype(np.int64) @ np.array([64, 8, 1])
    values, places = np.unique(kinds, return_inverse=True)
    bank = np.stack([_tile(int(value), False) for value in values])
    tiles = bank[places.reshape(kinds.shape)]
    column, row = AGENT
    tiles[:, column, row] = np.stack([_tile(int(value), True) for value in kinds[:, column, row]])
    count, columns, rows = kinds.shape
    return tiles.transpose(0, 2, 3, 1, 4, 5).reshape(count, rows * TILE, columns * TILE, 3)


@cache
def _tile(kind: int, agent: bool) -> np.ndarray:
    _gymnasium()
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import WorldObj

    content = WorldObj.decode(kind // 64, kind // 8 % 8, kind % 8)
    return Grid.render_tile(content, 3 if agent else None, highlight=kind > 0, tile_size=TILE).astype(np.uint8)


def _level_id(name: str) -> str:
    """BabyAI-GoToLocal-v0 for babyai/GoToLocal."""
    known = {}
    for one in _gymnasium().registry:
        family, _, level = one.rpartition("-v")[0].partition("-")
        if family in ("BabyAI", "MiniGrid"):
            known[f"{family.lower()}/{level}"] = one
    if name not in known:
        raise unknown("world", name, known)
    return known[name]


@cache
def _gymnasium() -> Any:
    """gymnasium with minigrid's levels registered. Raises UserError where they are not installed."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        with _silence():
            import gymnasium
            import minigrid  # noqa: F401
    except ImportError:
        raise UserError("worlds of minigrid and BabyAI need minigrid: pip install 'foveate[worlds]'") from None
    return gymnasium


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """minigrid prints what it tries, and warns of what its dependencies do."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
