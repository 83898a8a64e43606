"""Worlds of panda-gym: a simulated robot arm before a camera (Gallouédec et al. 2021,
https://arxiv.org/abs/2106.13687).

The agent sees an image of 84 x 84 pixels in colour and depth, and an action is how far the hand shall move along x, y
and z. panda-gym is the extra `panda`.
"""

import contextlib
import ctypes
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from foveate.data.worlds.actions import Action, ActionSpace
from foveate.data.worlds.views import COLOUR_AND_DEPTH, Views, encode_images
from foveate.errors import UserError, unknown

SIDE = 84
"""Pixels of the image's side."""

CAMERA = {"cameraTargetPosition": (0, 0, 0.13), "distance": 0.9, "yaw": 30, "pitch": -10, "roll": 0, "upAxisIndex": 2}
ANGLE = 34
"""Degrees from the left to the right edge of the image."""

NEAREST, FARTHEST = 0.1, 10.0
"""Metres from the camera that are drawn."""

DEPTH = (0.6, 1.2)
"""Metres from the camera between which depth is measured: 255 and 0 in the image."""

MOST_STEPS = {"Reach": 10}
"""Actions until an episode is broken off; in other worlds panda-gym's own limit."""

_MAKING = Lock()
"""Held while a simulator is made, which changes what all threads share."""

GAIN = 10
"""How strongly the teacher moves towards the goal: in one step by all that is left, at less than 1 / GAIN metres."""


class PandaWorld:
    """One episode of a robot, whose goal a seed decides; a `foveate.data.worlds.named.VisualWorld`.

    All worlds of one name share a simulator. It repeats an episode from its seed, so a world is its seed and its
    actions: these are replayed where another world acted in between.
    """

    def __init__(self, name: str, seed: int, views: Views = "pixels") -> None:
        """Raises UserError for a name that is not a world, for views that it has not, or where panda-gym is missing."""
        self.name, self.seed, self.views = name, seed, views
        self.done: list[Action] = []
        self.succeeded = False
        """Whether the last action reached the goal."""
        self._simulator = _simulator(name)
        self._image: np.ndarray | None = None
        encode_images(np.zeros((1, 1, 1, COLOUR_AND_DEPTH), np.uint8), views, name)

    @property
    def instruction(self) -> str:
        return self.name.partition("/")[2].lower()

    @property
    def space(self) -> ActionSpace:
        return ActionSpace("numbers", self._simulator.env.action_space.shape[0])

    @property
    def image(self) -> UInt8[np.ndarray, "84 84 4"]:
        """What the camera sees now, in colour and depth."""
        if self._image is None:
            with self._entered() as env:
                self._image = _photograph(env.sim.physics_client)
        return self._image

    def observe(self) -> dict[str, Float32[np.ndarray, "c 84 84"]]:
        """The image as `pixels` (4, 84, 84), or (2, 84, 84) in grey and depth, from -1 to 1."""
        return {"pixels": encode_images(self.image[None], self.views, self.name)[0]}

    def act(self, action: Action) -> bool:
        with self._entered() as env:
            *_, ended, _, info = env.step(np.array(action, np.float32))
            self.done.append(action)
        self.succeeded, self._image = bool(info["is_success"]), None
        return ended or len(self.done) >= self._simulator.most_steps

    def copy(self) -> "PandaWorld":
        copied = PandaWorld(self.name, self.seed, self.views)
        copied.done, copied.succeeded, copied._image = list(self.done), self.succeeded, self._image
        return copied

    def view(self) -> UInt8[np.ndarray, "84 84 3"]:
        """What the agent sees now, in colour."""
        return self.image[..., :3]

    def picture(self) -> UInt8[np.ndarray, "h w 3"]:
        """The view, drawn four times as fine."""
        with self._entered() as env:
            return _photograph(env.sim.physics_client, 4 * SIDE)[..., :3]

    def teacher(self) -> Action:
        """The action straight towards the goal."""
        with self._entered() as env:
            return tuple(np.clip(GAIN * (env.task.get_goal() - env.task.get_achieved_goal()), -1, 1).tolist())

    @contextlib.contextmanager
    def _entered(self) -> Iterator[Any]:
        """The simulator's environment, in the state of this world and for this thread alone."""
        simulator = self._simulator
        with simulator.lock:
            inside, simulator.world = simulator.world is self, None
            if not inside:
                simulator.env.reset(seed=self.seed)
                for action in self.done:
                    simulator.env.step(np.array(action, np.float32))
            yield simulator.env
            simulator.world = self  # whose state nobody knows after an error


@dataclass
class _Simulator:
    env: Any
    most_steps: int
    world: PandaWorld | None = None
    """Whose state it is in."""
    lock: Lock = field(default_factory=Lock)
    """Held by the thread that moves or draws the robot."""


def teacher_episode(
    name: str, seed: int, noise: float = 0.0
) -> tuple[UInt8[np.ndarray, "T 84 84 4"], Float32[np.ndarray, "T n"]]:
    """Returns the teacher's episode in a world of this seed: the images before its actions, and these.

    With `noise`, this share of its actions is replaced by random ones when they are done.
    """
    world, generator = PandaWorld(name, seed), np.random.default_rng(seed)
    images, actions, ended = [], [], False
    while not ended:
        images.append(world.image)
        actions.append(world.teacher())
        ended = world.act(world.space.draw(generator) if noise and generator.random() < noise else actions[-1])
    return np.stack(images), np.array(actions, np.float32)


def _photograph(client: Any, side: int = SIDE) -> UInt8[np.ndarray, "h w 4"]:
    lens = client.computeProjectionMatrixFOV(ANGLE, 1.0, NEAREST, FARTHEST)
    seen = client.getCameraImage(
        side, side, client.computeViewMatrixFromYawPitchRoll(**CAMERA), lens, renderer=client.ER_TINY_RENDERER, shadow=0
    )
    colour = np.array(seen[2], np.uint8).reshape(side, side, 4)[..., :3]
    ratio = np.array(seen[3], np.float64).reshape(side, side)
    metres = FARTHEST * NEAREST / (FARTHEST - (FARTHEST - NEAREST) * ratio)
    near, far = DEPTH
    depth = np.rint(255 * np.clip((far - metres) / (far - near), 0, 1)).astype(np.uint8)
    return np.concatenate([colour, depth[..., None]], -1)


def _simulator(name: str) -> _Simulator:
    """The only simulator of a name. Raises UserError for one that is unknown, or where panda-gym is not installed."""
    with _MAKING:
        return _make_simulator(name)


@cache
def _make_simulator(name: str) -> _Simulator:
    """PandaReach for panda/Reach. Raises UserError for another name, or where panda-gym is not installed."""
    gymnasium = _gymnasium()
    known = {}
    for one in gymnasium.registry:
        world, _, version = one.rpartition("-v")
        if world.startswith("Panda") and version:
            known[f"panda/{world.removeprefix('Panda')}"] = one
    if name not in known:
        raise unknown("world", name, known)
    with _silence(), _few_triangles():
        env = gymnasium.make(known[name], disable_env_checker=True)
    usual = env.spec.max_episode_steps
    return _Simulator(env.unwrapped, MOST_STEPS.get(name.partition("/")[2], usual))


@cache
def _gymnasium() -> Any:
    """gymnasium with panda-gym's worlds registered. Raises UserError where they are not installed."""
    try:
        with _silence():
            import gymnasium
            import panda_gym  # noqa: F401
    except ImportError:
        raise UserError("worlds of panda need panda-gym: pip install 'foveate[panda]'") from None
    return gymnasium


@contextlib.contextmanager
def _few_triangles() -> Iterator[None]:
    """Have a robot drawn as the shapes that it collides with, in a 15th of the time. It moves as ever."""
    from panda_gym.pybullet import PyBullet
    from pybullet import URDF_IGNORE_VISUAL_SHAPES

    usual = PyBullet.loadURDF

    def load(self: Any, body_name: str, **options: Any) -> None:
        usual(self, body_name, flags=URDF_IGNORE_VISUAL_SHAPES, **options)

    PyBullet.loadURDF = load
    try:
        yield
    finally:
        PyBullet.loadURDF = usual


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The simulator writes what it is started with, past `sys.stdout`."""
    with warnings.catch_warnings(), open(os.devnull, "wb") as nowhere, contextlib.ExitStack() as after:
        warnings.simplefilter("ignore")
        for number in (1, 2):
            with contextlib.suppress(OSError):  # it is closed
                own = os.dup(number)
                after.callback(os.close, own)
                after.callback(os.dup2, own, number)
        _flush()
        after.callback(_flush)
        for number in (1, 2):
            with contextlib.suppress(OSError):
                os.dup2(nowhere.fileno(), number)
        yield


def _flush() -> None:
    """Write what the C library has not written yet."""
    with contextlib.suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)
