"""What a teacher does with a simulated robot arm that reaches for a ball (https://arxiv.org/abs/2106.13687)."""

from pathlib import Path

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.worlds.episodes import Level, read_recordings
from foveate.data.worlds.panda import teacher_episode

WORLD = "panda/Reach"

EPISODES = 2000
"""Episodes of the teacher; their worlds have the seeds from 0 on."""

NOISE = 0.3
"""Share of random actions in every second episode: an agent that errs must have seen what to do then."""

DEV, TEST = 1_000_000, 2_000_000
"""First seeds of the worlds to validate and to test on."""

COUNTS = (100, 500)
"""Worlds to validate and to test on."""


def open_panda(before_fetch: BeforeFetch) -> Splits[Dataset]:
    """Recordings of the teacher to learn from; worlds to act in to validate and to test on."""
    recordings = read_recordings([fetched("panda-reach-1", _record, before_fetch)])
    train = Dataset("panda-reach.train", list(recordings), "episodes", ["of the teacher"])
    worlds = [
        Dataset(f"panda-reach.{name}", [Level(WORLD, first + number) for number in range(count)], "levels")
        for name, first, count in zip(("dev", "test"), (DEV, TEST), COUNTS, strict=True)
    ]
    return Splits(train, *worlds)


def _record(folder: Path) -> None:
    """Have the teacher act in all worlds."""
    for seed in range(EPISODES):
        pixels, actions = teacher_episode(WORLD, seed, NOISE * (seed % 2))
        np.savez_compressed(folder / f"{seed:05}.npz", pixels=pixels, actions=actions, instruction=np.array("reach"))


SOURCE = Source(
    name="panda-reach",
    tasks=("control",),
    about="2,000 episodes of a robot arm that reaches for a ball, made in 10 minutes; needs panda-gym",
    size="0 MB, nothing is fetched",
    licence="MIT",
    open=open_panda,
)
