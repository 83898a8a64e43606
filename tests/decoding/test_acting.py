"""Acting in worlds, with a world and a model whose best plans are known by hand."""

import copy
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from foveate.decoding.acting import act, act_in_several_ways
from foveate.decoding.acting_in_turn import act_in_turn
from foveate.errors import UserError

LEFT, RIGHT, STOP = 0, 1, 2


@dataclass
class Line:
    """A walk on whole numbers; STOP ends it."""

    place: int
    visited: list[int] = field(default_factory=list)

    def observe(self) -> dict[str, np.ndarray]:
        return {"place": np.array([self.place], np.float32)}

    def act(self, action: int) -> bool:
        self.place += {LEFT: -1, RIGHT: 1, STOP: 0}[action]
        self.visited.append(self.place)
        return action == STOP

    def copy(self) -> "Line":
        return copy.deepcopy(self)


@dataclass
class Rows:
    goals: torch.Tensor

    def reorder(self, rows: torch.Tensor) -> None:
        self.goals = self.goals[rows]


class Table:
    """Probabilities of LEFT, RIGHT and STOP by how far the goal is to the right."""

    def __init__(self, probabilities: dict[int, list[float]]) -> None:
        self.probabilities = probabilities

    def start(self, goals: torch.Tensor) -> Rows:
        return Rows(goals)

    def step(self, observation: dict[str, torch.Tensor], state: Rows) -> torch.Tensor:
        left = (state.goals - observation["place"][:, 0]).long().tolist()
        return torch.tensor([self.probabilities[one] for one in left]).log()


WALKS = Table({-1: [0.8, 0.1, 0.1], 0: [0.1, 0.1, 0.8], 1: [0.1, 0.8, 0.1], 2: [0.1, 0.8, 0.1], 3: [0.1, 0.8, 0.1]})


def test_each_walks_to_its_goal_and_stops() -> None:
    episodes = act(WALKS, {"goals": torch.tensor([5.0, 2.0, 4.0])}, [Line(3), Line(3), Line(4)], 9)
    assert [episode.actions for episode in episodes] == [[RIGHT, RIGHT, STOP], [LEFT, STOP], [STOP]]
    assert [episode.world.place for episode in episodes] == [5, 2, 4]
    assert all(episode.ended for episode in episodes)
    assert episodes[0].log_prob == pytest.approx(3 * np.log(0.8))


def test_the_limit_of_steps_ends_a_walk() -> None:
    (episode,) = act(WALKS, {"goals": torch.tensor([5.0])}, [Line(2)], 2)
    assert (episode.actions, episode.ended, episode.world.place) == ([RIGHT, RIGHT], False, 4)


def test_a_beam_finds_what_greedy_search_misses() -> None:
    """RIGHT is likelier at first, but nothing after it is: 0.5 x 0.4 < 0.4 x 0.9."""
    model = Table(
        {1: [0.4, 0.5, 0.1], 2: [0.05, 0.05, 0.9], 0: [0.3, 0.3, 0.4], 3: [0.3, 0.3, 0.4], -1: [0.3, 0.3, 0.4]}
    )
    start = Line(0)
    inputs = {"goals": torch.tensor([1.0])}
    (greedy,) = act(model, inputs, [start.copy()], 4)
    (beam,) = act(model, inputs, [start], 4, width=3)
    assert greedy.actions == [RIGHT, STOP]
    assert beam.actions == [LEFT, STOP]
    assert beam.log_prob == pytest.approx(np.log(0.4 * 0.9))
    assert (start.visited, beam.world.visited) == ([], [-1, -1])


def test_invalid_limits() -> None:
    with pytest.raises(UserError, match="the width of a beam must be at least 1, not 0"):
        act(WALKS, {"goals": torch.tensor([5.0])}, [Line(3)], 9, width=0)


def test_several_ways_are_the_likeliest_ones_in_order() -> None:
    (found,) = act_in_several_ways(Table(FAR), {"goals": torch.tensor([1.0])}, [Line(0)], 4, 4, 2)
    assert [episode.actions for episode in found] == [[RIGHT, STOP], [STOP]]
    assert [episode.log_prob for episode in found] == pytest.approx(np.log([0.64, 0.1]).tolist())


FAR = defaultdict(lambda: [0.8, 0.1, 0.1], WALKS.probabilities)
"""A beam comes to places that are far to the right of a goal."""


def read_goals(goals: list[float]) -> dict[str, torch.Tensor]:
    return {"goals": torch.tensor(goals)}


def test_instructions_in_turn_begin_where_the_last_one_ended() -> None:
    goals = [[2.0, 1.0], [0.0], [1.0, 2.0, 3.0]]
    starts = [Line(0), Line(0), Line(0)]
    for width in (1, 3):
        found = act_in_turn(Table(FAR), goals, read_goals, starts, lambda line: line.place, 9, width)
        assert [[episode.world.place for episode in own] for own in found] == [[2, 1], [0], [1, 2, 3]]
    assert [line.place for line in starts] == [0, 0, 0]


def test_a_later_instruction_decides_between_places() -> None:
    """STOP at once is likelier for the first goal, but then nothing is likely for the second."""
    known = {1: [0.0, 0.4, 0.6], 0: [0.0, 0.0, 1.0], 5: [0.3, 0.4, 0.3], 4: [0.0, 0.0, 1.0]}
    model = Table(defaultdict(lambda: [0.4, 0.3, 0.3], known))
    goals = [[1.0, 5.0]]
    ways = [act_in_turn(model, goals, read_goals, [Line(0)], lambda line: line.place, 9, width) for width in (1, 2)]
    assert [[episode.actions for episode in own[0]] for own in ways] == [
        [[STOP], [RIGHT, STOP]],
        [[RIGHT, STOP], [STOP]],
    ]
