"""Acting on several instructions one after the other: each begins where the last one ended."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from foveate.contracts import Actor, World
from foveate.decoding.acting import Episode, act_in_several_ways


@dataclass
class Course:
    """What was done for the instructions until now."""

    episodes: list[Episode]
    """One for each instruction."""
    world: World
    """The world after the last one."""
    log_prob: float = 0.0
    """Of all actions together."""


def act_in_turn(
    model: Actor,
    instructions: Sequence[Sequence[Any]],
    read: Callable[[Sequence[Any]], dict[str, Tensor]],
    worlds: Sequence[World],
    state_of: Callable[[Any], Hashable],
    max_steps: int,
    width: int = 1,
) -> list[list[Episode]]:
    """An episode for each of the instructions of each world, in their order.

    `read` makes the model's inputs of some instructions. With a `width` above 1 that many courses are followed in each
    world, which differ in where they are, by `state_of` a world: a sentence that hardly fits where the likeliest course
    has ended speaks for another one. Each world has one instruction at least.
    """
    courses = [[Course([], world)] for world in worlds]
    for turn in range(max(map(len, instructions), default=0)):
        open_rows = [row for row, own in enumerate(instructions) if turn < len(own)]
        begun = [(row, course) for row in open_rows for course in courses[row]]
        inputs = read([instructions[row][turn] for row, _ in begun])
        starts = [course.world.copy() for _, course in begun]
        found = act_in_several_ways(model, inputs, starts, max_steps, width, width)
        longer: dict[int, list[Course]] = {row: [] for row in open_rows}
        for (row, course), episodes in zip(begun, found, strict=True):
            longer[row] += [
                Course([*course.episodes, one], one.world, course.log_prob + one.log_prob) for one in episodes
            ]
        for row, candidates in longer.items():
            courses[row] = _likeliest(candidates, state_of, width)
    return [own[0].episodes for own in courses]


def _likeliest(courses: Sequence[Course], state_of: Callable[[Any], Hashable], count: int) -> list[Course]:
    """The likeliest courses that end in different states, the likeliest first."""
    found: dict[Hashable, Course] = {}
    for course in sorted(courses, key=lambda course: -course.log_prob):
        found.setdefault(state_of(course.world), course)
    return list(found.values())[:count]
