"""Acting in worlds: greedy and beam search with models that observe before each step.

A beam holds worlds where text decoding holds tokens: each hypothesis has a copy of its world and acts in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import Actor, World
from foveate.decoding.beam import check_width
from foveate.errors import at_least


@dataclass
class Episode:
    """The actions of a model in a world."""

    actions: list[Any]
    """The number of each action, or the numbers of which it consists."""
    log_prob: float
    """Of all actions together, where they are choices."""
    world: World
    """The world after the last action."""
    ended: bool = False
    """Whether the last action ended the episode; otherwise the limit of steps did."""


def act(
    model: Actor,
    inputs: dict[str, Tensor],
    worlds: Sequence[World],
    max_steps: int,
    width: int = 1,
    generator: torch.Generator | None = None,
) -> list[Episode]:
    """The likeliest episode in each world that beam search of this `width` finds; a width of 1 is greedy search.

    `inputs` are what the model reads before it acts, one row for each world. An episode ends when `World.act` says so,
    or after `max_steps`. With a width of 1 the given worlds are changed; otherwise copies are. The search in a world
    ends when `width` episodes have ended, or when none that is open is likelier than the likeliest that has ended.
    With a `generator`, which takes a width of 1, actions are drawn by their probabilities instead. Raises UserError for
    limits below 1.
    """
    if generator is not None and width > 1:
        raise ValueError("actions are drawn, or searched with a beam, but not both")
    return [found[0] for found in act_in_several_ways(model, inputs, worlds, max_steps, width, 1, generator)]


@torch.inference_mode()
def act_in_several_ways(
    model: Actor,
    inputs: dict[str, Tensor],
    worlds: Sequence[World],
    max_steps: int,
    width: int = 1,
    ways: int = 1,
    generator: torch.Generator | None = None,
) -> list[list[Episode]]:
    """The likeliest episodes in each world, at most `ways`, the likeliest first; otherwise as `act`.

    The search in a world ends when `width` episodes have ended, or when `ways` of them are as likely as all that are
    open.
    """
    check_width(width)
    at_least(1, "max_steps", max_steps)
    state = model.start(**inputs)
    device = next(iter(inputs.values())).device
    ended: list[list[Episode]] = [[] for _ in worlds]
    beams = [[Episode([], 0.0, world)] for world in worlds]
    for _ in range(max_steps):
        observations = [episode.world.observe() for beam in beams for episode in beam]
        logits = model.step(stack_observations(observations, device), state)
        log_probs = logits.float().log_softmax(-1).cpu()
        rows: list[int] = []
        first = 0
        for number, beam in enumerate(beams):
            parents, beams[number] = _advance(
                beam, log_probs[first : first + len(beam)], width, ways, ended[number], generator
            )
            rows += [first + parent for parent in parents]
            first += len(beam)
        if not rows:
            break
        state.reorder(torch.tensor(rows, device=device))
    return [
        sorted(ended[number] or beam, key=lambda episode: -episode.log_prob)[:ways] for number, beam in enumerate(beams)
    ]


def stack_observations(observations: Sequence[dict[str, np.ndarray]], device: torch.device | str) -> dict[str, Tensor]:
    """One tensor for each part of the observations, with a row for each."""
    return {
        name: torch.from_numpy(np.stack([seen[name] for seen in observations])).to(device) for name in observations[0]
    }


def _advance(
    beam: list[Episode],
    log_probs: Tensor,
    width: int,
    ways: int,
    ended: list[Episode],
    generator: torch.Generator | None,
) -> tuple[list[int], list[Episode]]:
    """The parents and the open episodes after one more action; those that end go to `ended`."""
    if not beam:
        return [], []
    totals = log_probs + torch.tensor([episode.log_prob for episode in beam])[:, None]
    if generator is None:
        best, places = totals.flatten().topk(min(width, totals.numel()))
    else:
        places = log_probs[0].exp().multinomial(1, generator=generator)
        best = totals[0, places]
    parents: list[int] = []
    opened: list[Episode] = []
    for log_prob, place in zip(best.tolist(), places.tolist(), strict=True):
        parent, action = divmod(place, totals.shape[1])
        world = beam[parent].world if width == 1 else beam[parent].world.copy()
        episode = Episode([*beam[parent].actions, action], log_prob, world)
        episode.ended = world.act(action)
        if episode.ended:
            ended.append(episode)
        else:
            parents.append(parent)
            opened.append(episode)
    if not opened:
        return [], []
    likelier = sum(episode.log_prob >= opened[0].log_prob for episode in ended)
    if len(ended) >= width or likelier >= ways:
        return [], []
    return parents, opened
