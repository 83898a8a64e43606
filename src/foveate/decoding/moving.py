"""Moving in worlds, with models that give the numbers of each action, such as how far a robot's hand shall go."""

from collections.abc import Sequence

import torch
from torch import Tensor

from foveate.contracts import Actor, World
from foveate.decoding.acting import Episode, stack_observations
from foveate.errors import at_least


@torch.inference_mode()
def move(model: Actor, inputs: dict[str, Tensor], worlds: Sequence[World], max_steps: int) -> list[Episode]:
    """Runs the model in each world, one after the other: simulators are slow to go to and fro between worlds.

    `inputs` are what the model reads before it acts, one row for each world. An episode ends when `World.act` says so,
    or after `max_steps`. Numbers beyond -1 and 1 are cut. The given worlds are changed. Raises UserError for a limit
    below 1.
    """
    at_least(1, "max_steps", max_steps)
    found = []
    for row, world in enumerate(worlds):
        own = {name: part[row : row + 1] for name, part in inputs.items()}
        device, state = next(iter(own.values())).device, model.start(**own)
        episode = Episode([], 0.0, world)
        while not episode.ended and len(episode.actions) < max_steps:
            numbers = model.step(stack_observations([world.observe()], device), state)[0].float().clamp(-1, 1)
            episode.actions.append(tuple(numbers.tolist()))
            episode.ended = world.act(episode.actions[-1])
        found.append(episode)
    return found
