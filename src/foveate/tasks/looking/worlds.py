"""Looks at models that act in a world: each action over the words of an instruction, or over what was seen."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from foveate.data.worlds.named import open_world
from foveate.data.worlds.routes import words_of
from foveate.decoding.acting import stack_observations
from foveate.errors import UserError
from foveate.forms.inputs import check_length, make_title, require_text
from foveate.sight import Sight, look
from foveate.tasks.answers.walks import Walking, look_at_words
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import Image, SidePair

if TYPE_CHECKING:
    from foveate.tasks.acting.agents import Acted

_WALK = re.compile(r"\s*(\S.*?\.xml)\s+(-?\d+,-?\d+,-?\d+)[\s:]+(.+)", re.DOTALL | re.IGNORECASE)

_LEVEL = re.compile(r"\s*([\w-]+/[\w-]+)(?:\s+(\d+))?\s*")


def look_at_walk(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None) -> LookResult:
    """A look at a walk, each action over the words. The input is "MAP.xml X,Y,HEADING instruction".

    Raises UserError for another input, and for a model that does not attend.
    """
    name = _name(predictor)
    text = require_text(given, name)
    if not (parts := _WALK.fullmatch(text)):
        raise UserError(
            f"{make_title(text)!r}: where to walk? The input is a map, a pose and the instruction, "
            'such as "l.xml 3,5,180 go to the lamp"'
        )
    place, pose, instruction = parts.groups()
    walked = predictor.run(instruction, Walking(Path(place), pose))
    sight, actions = look_at_words(predictor, walked, sites)
    words = words_of(instruction) or ["[UNKNOWN]"]
    check_length(len(words), max_length, "the instruction", "words")
    sides: SidePair = (actions, words)
    notes = [_known(sight, predictor, name), f"Walk: {walked.line.replace(chr(9), ' | ')}", *sight.notes]
    return LookResult(sight, dict.fromkeys(sight.sites, sides), make_title(instruction), notes)


def look_at_episode(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None) -> LookResult:
    """A look at an agent in a level: a map for each step, over what was seen. The input is "WORLD" or "WORLD SEED".

    Raises UserError for another input.
    """
    from foveate.tasks.acting.examples import Acting

    name = _name(predictor)
    text = require_text(given, name)
    if not (parts := _LEVEL.fullmatch(text)):
        raise UserError(
            f'{make_title(text)!r} is no level: the input is a world and a seed, such as "babyai/GoToLocal 7"'
        )
    acted = predictor.run(parts[1], Acting(int(parts[2] or 1)))
    sight, views, (rows, columns), streams = look_at_steps(predictor, acted, sites)
    check_length(rows * columns, max_length, "a view", "places")
    names: dict[str, SidePair] = {}
    for site in sight.sites:
        stream, number = _place(site)
        same = [step for step, (view, _) in enumerate(streams[stream]) if view == number]
        actions = [f"{step + 1}. {acted.names[step]}" for step in same]
        names[site] = (actions, Image.of(views[same[0]], rows, columns))
    notes = [_known(sight, predictor, name), f"Actions: {acted.line.replace(chr(9), ' | ')}", *sight.notes]
    return LookResult(sight, names, f"{text.strip()}: {acted.instruction}", notes)


def watch_episode(predictor: Predictor, acted: "Acted") -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The level before each action, the views (T, h, w, 3), and the attention to them (T, rows, columns), the mean of
    all streams."""
    world = open_world(acted.level.world, acted.level.seed)
    levels = []
    for action in acted.actions:
        levels.append(world.picture())
        world.act(action)
    sight, views, grid, streams = look_at_steps(predictor, acted)
    maps = {_place(site): sight[site].weights().mean(1)[0].cpu().numpy() for site in sight.sites}
    found = [
        np.stack([maps[stream, view][row] for view, row in seen]) for stream, seen in enumerate(streams)
    ]  # (T, rows * columns) of each stream
    return levels, views, np.mean(found, 0).reshape(-1, *grid)


class Watched(NamedTuple):
    """What was seen in an episode."""

    sight: Sight
    """It has a site for each view of a stream that differs from those before it; see `same_views`."""
    views: np.ndarray
    """What the agent was shown, in colour (T, h, w, 3), without edges that it does not read."""
    grid: tuple[int, int]
    """Rows and columns that the agent attends to."""
    streams: list[list[tuple[int, int]]]
    """For each stream of the model `same_views` of what it reads."""


def _place(site: str) -> tuple[int, int]:
    """The stream of a site, and the number of its view."""
    path, _, number = site.partition("#")
    stream = int(path.split(".")[1]) if path.startswith("streams.") else 0
    return stream, int(number or 1) - 1


def look_at_steps(predictor: Predictor, acted: "Acted", sites: Sequence[str] | None = None) -> Watched:
    """A sight of the model in an episode."""
    model: Any = predictor.model
    world = open_world(acted.level.world, acted.level.seed, predictor.processor.views)
    seen, views = [], []
    for action in acted.actions:
        seen.append(world.observe())
        views.append(world.view())
        world.act(action)
    observed = {name: part[None] for name, part in stack_observations(seen, predictor.device).items()}
    inputs = predictor.processor.inputs([acted.instruction])
    with torch.inference_mode(), look(model, sites=sites) as sight:
        model(**predictor.on_device(inputs), **observed)
    parts = observed["pixels"][0].cpu().split(getattr(model.config, "streams", observed["pixels"].shape[2]), 1)
    streams = [same_views(part.numpy()) for part in parts]
    size = observed["pixels"].shape[-2:]
    shown = np.stack(views)
    height, width = (
        seen * whole // side for seen, whole, side in zip(model.seen_size(*size), shown.shape[1:3], size, strict=True)
    )
    return Watched(sight, shown[:, :height, :width], model.grid_size(*size), streams)


def same_views(views: np.ndarray) -> list[tuple[int, int]]:
    """For each step the number of its view among those that differ, and how often this one was seen before."""
    counts: dict[bytes, int] = {}
    found = []
    for view in views:
        key = view.tobytes()
        counts[key] = counts.get(key, -1) + 1
        found.append(([*counts].index(key), counts[key]))
    return found


def _name(predictor: Predictor) -> str:
    return f"{predictor.task.model} from {predictor.task.out}"


def _known(sight: Sight, predictor: Predictor, name: str) -> str:
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    return name
