"""The robot's worlds: with a robot of the tests, and with panda-gym's own where it is installed."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import fake_robot
import numpy as np
import pytest

from foveate.data.sources import open_source, panda
from foveate.data.worlds import panda as panda_worlds
from foveate.data.worlds.actions import ActionSpace
from foveate.data.worlds.named import open_world
from foveate.data.worlds.panda import PandaWorld, teacher_episode
from foveate.errors import UserError

REACH = "panda/Reach"


def test_a_world_is_its_seed_and_its_actions(monkeypatch) -> None:
    robot = fake_robot.install(monkeypatch)
    one, other = (open_world(REACH, seed) for seed in (3, 5))
    hands = []
    for step in range(3):
        for world, sign in ((one, 1), (other, -1)):
            assert not world.act((0.3 * sign, 0.1 * step, 0.0))
            hands.append(robot.hand)
    assert robot.resets == 6
    np.testing.assert_allclose(hands[-2], [0.045, 0.015, 0])
    np.testing.assert_allclose(hands[-1], [-0.045, 0.015, 0])
    copied = one.copy()
    one.act((1.0, 1.0, 1.0))
    assert np.array_equal(copied.observe()["pixels"], PandaWorld.copy(copied).observe()["pixels"])
    assert not np.array_equal(copied.observe()["pixels"], one.observe()["pixels"])
    assert (one.instruction, one.space) == ("reach", ActionSpace("numbers", 3))


def test_worlds_of_two_threads_do_not_move_each_other(monkeypatch) -> None:
    robot = fake_robot.install(monkeypatch)
    usual = robot.step

    def step(action: np.ndarray) -> tuple:
        hand = robot.hand
        time.sleep(0.002)  # so that the other thread would act now, if it were let in
        assert robot.hand is hand
        return usual(action)

    monkeypatch.setattr(robot, "step", step)

    def images(seed: int) -> list[np.ndarray]:
        world = PandaWorld(REACH, seed)
        return [(world.act((0.2, -0.1, 0.1)), world.image)[1] for _ in range(4)]

    with ThreadPoolExecutor() as threads:
        together = list(threads.map(images, (3, 5)))
    assert [[*map(np.ndarray.tobytes, one)] for one in together] == [
        [*map(np.ndarray.tobytes, images(seed))] for seed in (3, 5)
    ]


def test_a_world_is_entered_anew_after_an_error(monkeypatch) -> None:
    robot = fake_robot.install(monkeypatch)
    world = PandaWorld(REACH, 3)
    world.act((0.2, 0.0, 0.0))
    usual = robot.step
    monkeypatch.setattr(robot, "step", lambda action: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        world.act((0.2, 0.0, 0.0))
    monkeypatch.setattr(robot, "step", usual)
    world.act((0.2, 0.0, 0.0))
    np.testing.assert_allclose(robot.hand, [0.02, 0, 0], atol=1e-6)
    assert robot.resets == 2


def test_episodes_end_at_the_goal_or_after_ten_actions(monkeypatch) -> None:
    fake_robot.install(monkeypatch)
    world = PandaWorld(REACH, 3)
    assert [world.act((0.0, 0.0, 0.0)) for _ in range(10)] == [False] * 9 + [True]
    assert not world.succeeded
    images, actions = teacher_episode(REACH, 3)
    assert images.shape == (len(actions), 84, 84, 4)
    world = PandaWorld(REACH, 3)
    ends = [world.act(tuple(action)) for action in actions.tolist()]
    assert ends == [False] * (len(actions) - 1) + [True]
    assert world.succeeded
    noisy = [teacher_episode(REACH, seed, 0.5)[1] for seed in range(10)]
    assert sum(map(len, noisy)) > sum(len(teacher_episode(REACH, seed)[1]) for seed in range(10))


def test_colour_and_depth(monkeypatch) -> None:
    robot = fake_robot.install(monkeypatch)
    world = PandaWorld(REACH, 3)
    image = world.image
    row, column = (int(84 * (0.5 + 1.5 * one)) for one in (-robot.goal[2], robot.goal[0]))
    assert image[row, column, :3].tolist() == [0, 255, 0]
    ratio = 0.89 + 0.1 * robot.goal[1]
    metres = 10 * 0.1 / (10 - 9.9 * ratio)
    assert image[row, column, 3] == pytest.approx(255 * np.clip((1.2 - metres) / 0.6, 0, 1), abs=1)
    grey = PandaWorld(REACH, 3, "grey-depth").observe()["pixels"]
    assert grey.shape == (2, 84, 84)
    assert grey[0, row, column] == pytest.approx(2 * 0.587 - 1, abs=1e-6)
    assert grey[1, row, column] == pytest.approx(image[row, column, 3] / 127.5 - 1, abs=1e-6)
    assert world.view().shape == (84, 84, 3)
    assert world.picture().shape == (336, 336, 3)
    with pytest.raises(UserError, match="panda/Reach has images alone: learn from them with --views pixels"):
        PandaWorld(REACH, 3, "symbols")


def test_the_source_records_the_teacher(tmp_path, monkeypatch) -> None:
    fake_robot.install(monkeypatch)
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(panda, "EPISODES", 5)
    splits = open_source("panda-reach", task="control")
    assert [len(splits.train), len(splits.dev), len(splits.test)] == [5, 100, 500]
    images, actions = teacher_episode(REACH, 3, panda.NOISE)
    recording = splits.train[3]
    assert recording.instruction == "reach"
    np.testing.assert_array_equal(recording.actions, actions)
    np.testing.assert_array_equal(recording.read(), images)


def test_where_panda_gym_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "panda_gym", None)
    panda_worlds._make_simulator.cache_clear()
    panda_worlds._gymnasium.cache_clear()
    with pytest.raises(UserError, match=r"worlds of panda need panda-gym: pip install 'foveate\[panda\]'"):
        open_world(REACH, 1)


def test_panda_gyms_own_robot() -> None:
    """In a process of its own: what it writes past Python would be seen here."""
    pytest.importorskip("panda_gym")
    program = """
import numpy as np
from foveate.data.worlds.panda import PandaWorld, teacher_episode
from foveate.errors import UserError
def hand_of(world):
    with world._entered() as env:
        return env.task.get_achieved_goal()
one, other = PandaWorld("panda/Reach", 1), PandaWorld("panda/Reach", 2)
hands = [[], []]
for _ in range(2):
    for world, found in zip((one, other), hands):
        world.act(world.teacher())
        found.append(hand_of(world))
alone = PandaWorld("panda/Reach", 1)
for action, hand in zip(one.done, hands[0]):
    alone.act(action)
    assert (hand_of(alone) == hand).all()
assert np.array_equal(one.image, alone.image)
images, actions = teacher_episode("panda/Reach", 1)
assert images.shape[1:] == (84, 84, 4)
assert (images[0, ..., 1].astype(int) - images[0, ..., 0] > 80).sum() > 9, "a green ball is seen"
world = PandaWorld("panda/Reach", 1)
assert [world.act(tuple(one)) for one in actions.tolist()][-1] and world.succeeded
try:
    PandaWorld("panda/reach", 1)
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("unknown world 'panda/reach'; did you mean panda/Reach"), done.stderr
    assert done.stderr == ""
