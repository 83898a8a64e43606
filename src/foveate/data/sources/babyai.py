"""What BabyAI's bot does in random levels of GoToLocal (https://arxiv.org/abs/1810.08272): "go to the red ball"."""

from functools import partial
from pathlib import Path

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.worlds.episodes import Level, Recording
from foveate.data.worlds.grid_levels import bot_episode, draw_views

WORLD = "babyai/GoToLocal"

EPISODES = 20_000
"""Episodes of the bot; their levels have the seeds from 0 on."""

NOISE = 0.3
"""Share of random moves in every second episode: an agent that errs must have seen what to do then."""

DEV, TEST = 1_000_000, 2_000_000
"""First seeds of the levels to validate and to test on."""

COUNTS = (200, 500)
"""Levels to validate and to test on."""

FILE = "episodes.npz"


def open_babyai(before_fetch: BeforeFetch) -> Splits[Dataset]:
    """Recordings of the bot to learn from; levels to act in to validate and to test on."""
    folder = fetched("babyai-go-to-local-2", _record, before_fetch)
    with undamaged(folder), np.load(folder / FILE, allow_pickle=False) as archive:
        views, actions, ends = archive["views"], archive["actions"], archive["ends"].tolist()
        instructions = archive["instructions"].tolist()
    found = []
    for number, (begin, end, instruction) in enumerate(zip([0, *ends], ends, instructions, strict=False)):
        codes = views[begin:end]
        acted = tuple(actions[begin:end].tolist())
        found.append(_OfCodes(f"level {number}", instruction, acted, partial(draw_views, codes), partial(_same, codes)))
    levels = [
        Dataset(f"babyai.{name}", [Level(WORLD, first + number) for number in range(count)], "levels")
        for name, first, count in zip(("dev", "test"), (DEV, TEST), COUNTS, strict=True)
    ]
    return Splits(Dataset("babyai.train", found, "episodes", ["of the bot"]), *levels)


def _same(codes: np.ndarray) -> np.ndarray:
    return codes


class _OfCodes(Recording):
    """A recording that instruction and actions tell from others: its pixels need not be drawn for a digest."""

    def content(self) -> bytes:
        return f"{self.place}\0{self.instruction}\0{self.actions}".encode()


def _record(folder: Path) -> None:
    """Have the bot act in all levels."""
    views: list[np.ndarray] = []
    actions: list[int] = []
    ends, instructions = [], []
    for seed in range(EPISODES):
        instruction, seen, done = bot_episode(WORLD, seed, NOISE * (seed % 2))
        views.append(seen)
        actions += done
        ends.append(len(actions))
        instructions.append(instruction)
    np.savez_compressed(
        folder / FILE,
        views=np.concatenate(views),
        actions=np.array(actions),
        ends=np.array(ends),
        instructions=np.array(instructions),
    )


SOURCE = Source(
    name="babyai-go-to-local",
    tasks=("control",),
    about="20,000 episodes of BabyAI's bot in GoToLocal, half with random moves, made in 5 minutes; needs minigrid",
    size="0 MB, nothing is fetched",
    licence="Apache-2.0",
    open=open_babyai,
)
