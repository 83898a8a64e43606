"""Looks at an agent at all steps of an episode.

T steps    h, w height and width of a view
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from foveate.data.worlds.named import open_world
from foveate.decoding.acting import stack_observations
from foveate.forms.actions import LevelActions
from foveate.sight import Sight
from foveate.sight.measured_look import Target, finished, measured_look
from foveate.tasks.skill import Skill


class Retraced(NamedTuple):
    """What an agent read in an episode."""

    inputs: dict[str, Tensor]
    """Those of the model, for all steps."""
    views: np.ndarray
    """What the agent was shown, in colour (T, h, w, 3), without edges that it does not read."""
    grid: tuple[int, int]
    """Rows and columns that the agent attends to."""
    streams: list[list[tuple[int, int]]]
    """For each stream of the model `same_views` of what it reads."""


def retrace(agent: Skill, acted: LevelActions) -> Retraced:
    """What an agent reads that acts again as it acted."""
    model: Any = agent.model
    reads = agent.processor.reads
    world = open_world(acted.level.world, acted.level.seed, reads.views)
    seen, views = [], []
    for action in acted.actions:
        seen.append(world.observe())
        views.append(world.view())
        world.act(action)
    observed = {name: part[None] for name, part in stack_observations(seen, agent.device).items()}
    inputs = agent.on_device(reads.inputs([acted.instruction]))
    parts = observed["pixels"][0].cpu().split(getattr(model.config, "streams", observed["pixels"].shape[2]), 1)
    streams = [same_views(part.numpy()) for part in parts]
    size = observed["pixels"].shape[-2:]
    shown = np.stack(views)
    height, width = (
        seen * whole // side for seen, whole, side in zip(model.seen_size(*size), shown.shape[1:3], size, strict=True)
    )
    return Retraced({**inputs, **observed}, shown[:, :height, :width], model.grid_size(*size), streams)


def watch_steps(
    agent: Skill,
    inputs: dict[str, Tensor],
    sites: Sequence[str] | None = None,
    measure: str = "weights",
    target: Target | None = None,
) -> Sight:
    """A sight of an agent that reads the inputs of an episode, with maps of a measure.

    It has a site for each view of a stream that differs from those before it; see `same_views`.
    """
    sight, _ = measured_look(agent.model, lambda: agent.model(**inputs), measure, sites, target)
    return finished(sight, measure)


def watch_episode(agent: Skill, acted: LevelActions) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The level before each action, the views (T, h, w, 3), and the attention to them (T, rows, columns), the mean of
    all streams."""
    world = open_world(acted.level.world, acted.level.seed)
    levels = []
    for action in acted.actions:
        levels.append(world.picture())
        world.act(action)
    inputs, views, grid, streams = retrace(agent, acted)
    sight = watch_steps(agent, inputs)
    maps = {stream_and_view(site): sight[site].weights().mean(1)[0].cpu().numpy() for site in sight.sites}
    found = [
        np.stack([maps[stream, view][row] for view, row in seen]) for stream, seen in enumerate(streams)
    ]  # (T, rows * columns) of each stream
    return levels, views, np.mean(found, 0).reshape(-1, *grid)


def stream_and_view(site: str) -> tuple[int, int]:
    """The stream of a site, and the number of its view."""
    path, _, number = site.partition("#")
    stream = int(path.split(".")[1]) if path.startswith("streams.") else 0
    return stream, int(number or 1) - 1


def same_views(views: np.ndarray) -> list[tuple[int, int]]:
    """For each step the number of its view among those that differ, and how often this one was seen before."""
    counts: dict[bytes, int] = {}
    found = []
    for view in views:
        key = view.tobytes()
        counts[key] = counts.get(key, -1) + 1
        found.append(([*counts].index(key), counts[key]))
    return found
