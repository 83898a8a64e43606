"""A robot without physics that stands for panda-gym's: a hand that goes where it is told, and a ball."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foveate.data.worlds import panda as panda_worlds

SIDE = panda_worlds.SIDE


class FakeRobot:
    """As panda-gym's environments: an action of three numbers moves the hand by up to 5 cm each way."""

    def __init__(self, numbers: int = 3) -> None:
        self.action_space = SimpleNamespace(shape=(numbers,))
        self.resets = 0
        self.hand = self.goal = np.zeros(3)
        self.task = SimpleNamespace(get_goal=lambda: self.goal, get_achieved_goal=lambda: self.hand)
        self.sim = SimpleNamespace(physics_client=self)
        self.ER_TINY_RENDERER = 0

    def reset(self, seed: int) -> None:
        self.resets += 1
        self.hand, self.goal = np.zeros(3), np.random.default_rng(seed).uniform(-0.15, 0.15, 3)

    def step(self, action: np.ndarray) -> tuple[Any, ...]:
        self.hand = self.hand + 0.05 * np.clip(action, -1, 1)[:3]
        reached = bool(np.linalg.norm(self.goal - self.hand) < 0.05)
        return {}, reached - 1.0, reached, False, {"is_success": reached}

    def computeProjectionMatrixFOV(self, *_: object) -> None: ...

    def computeViewMatrixFromYawPitchRoll(self, **_: object) -> None: ...

    def getCameraImage(self, width: int, height: int, *_: object, **__: object) -> tuple[Any, ...]:
        """A green ball and a red hand before a white wall, 1 m away, where both have their x and z."""
        colour, depth = np.full((height, width, 4), 255, np.uint8), np.full((height, width), 0.99)
        for place, shade in ((self.goal, (0, 255, 0, 255)), (self.hand, (255, 0, 0, 255))):
            row, column = (int(SIDE * (0.5 + 1.5 * one)) for one in (-place[2], place[0]))
            colour[row - 3 : row + 4, column - 3 : column + 4] = shade
            depth[row - 3 : row + 4, column - 3 : column + 4] = 0.89 + 0.1 * place[1]
        return width, height, colour, depth, None


def install(monkeypatch: pytest.MonkeyPatch, numbers: int = 3) -> FakeRobot:
    """Have panda/Reach be the robot of the tests."""
    robot = FakeRobot(numbers)
    simulator = panda_worlds._Simulator(robot, 10)
    monkeypatch.setattr(panda_worlds, "_simulator", lambda name: simulator)
    return robot
