"""Episodes to imitate: an instruction, images, and the action after each; and how they become tensors."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from foveate.array_files import read_arrays, texts_of
from foveate.data.dataset import Dataset
from foveate.data.text.files import Paths, as_paths
from foveate.data.worlds.actions import Action
from foveate.errors import UserError

MOST_STEPS = 100_000
"""Actions of the longest episode."""

MOST_CHANNELS = 64
"""Channels of an image."""

LONGEST_INSTRUCTION = 10_000
"""Characters."""

MOST_ACTIONS = 1000
"""Different actions of an agent, at most, or numbers of an action."""


@dataclass(frozen=True)
class Level:
    """A level of a world to act in, laid out by a seed."""

    world: str
    seed: int

    @property
    def place(self) -> str:
        return f"{self.world}, level {self.seed}"

    def content(self) -> bytes:
        return self.place.encode()


@dataclass(frozen=True)
class Recording:
    """A recorded episode: the `actions`, and the images (T, h, w, c) in 8 bits that were seen before each."""

    place: str
    instruction: str
    actions: tuple[Action, ...]
    read: Callable[[], UInt8[np.ndarray, "T h w c"]] = field(repr=False)
    codes: Callable[[], UInt8[np.ndarray, "T 7 7 3"]] | None = field(default=None, repr=False)
    """Kind, colour and state of each tile that was seen, where they are known."""

    def content(self) -> bytes:
        pixels = hashlib.blake2b(np.ascontiguousarray(self.read()).tobytes()).hexdigest()
        return f"{self.instruction}\0{self.actions}\0{pixels}".encode()


def read_recordings(paths: Paths) -> Dataset[Recording]:
    """A folder of .npz files, each with `pixels` (T, h, w, c) in 8 bits, `actions`, and, if there is one, the text
    `instruction`.

    Actions are choices (T), whole numbers, or movements (T, n) of n numbers from -1 to 1. All images must have the same
    size, and all actions must be of one kind. Raises UserError for anything else.
    """
    paths = as_paths(paths)
    if len(paths) != 1 or not paths[0].is_dir():
        raise UserError("recorded episodes are one folder of .npz files with pixels, actions and instruction")
    files = sorted(paths[0].glob("*.npz"))
    if not files:
        raise UserError(f"{paths[0]} has no .npz files with pixels, actions and instruction")
    found, shapes, kinds = [], set(), set()
    for file in files:
        pixels, actions, instruction = _load(file)
        shapes.add(pixels.shape[1:])
        kinds.add(actions.shape[1:])
        done = tuple(actions.tolist() if actions.ndim == 1 else map(tuple, actions.tolist()))
        found.append(Recording(file.name, instruction, done, partial(_pixels, file)))
    if len(shapes) > 1:
        raise UserError(f"{paths[0]}: all images must have one size, but there are {sorted(shapes)}")
    if len(kinds) > 1:
        raise UserError(f"{paths[0]}: all actions must be choices or have one number of numbers")
    return Dataset(paths[0].name, found, "episodes")


def _pixels(file: Path) -> np.ndarray:
    return _load(file)[0]


def _load(file: Path) -> tuple[np.ndarray, np.ndarray, str]:
    arrays = read_arrays(file, "an episode", ("pixels", "actions"))
    pixels, actions, instruction = arrays["pixels"], arrays["actions"], arrays.get("instruction", np.array(""))
    fits = actions.ndim in (1, 2) and actions.shape[:1] == pixels.shape[:1] and actions.size
    if pixels.ndim != 4 or pixels.dtype != np.uint8 or not fits or not pixels.size:
        raise UserError(
            f"{file}: pixels must be (steps, height, width, channels) in 8 bits and actions (steps) or "
            f"(steps, numbers), not {pixels.dtype} {pixels.shape} and {actions.shape}"
        )
    if pixels.shape[-1] > MOST_CHANNELS:
        raise UserError(f"{file} has images of {pixels.shape[-1]:,} channels; at most {MOST_CHANNELS} are read")
    if len(actions) > MOST_STEPS:
        raise UserError(f"{file} has {len(actions):,} steps; an episode has at most {MOST_STEPS:,}")
    _check_actions(actions, file)
    return pixels, actions, _text(instruction, file)


def _check_actions(actions: np.ndarray, file: Path) -> None:
    """Raise UserError for choices that are not whole numbers, and for movements beyond -1 to 1."""
    if actions.ndim == 1:
        if not np.issubdtype(actions.dtype, np.integer) or actions.min() < 0 or actions.max() >= MOST_ACTIONS:
            raise UserError(f"{file}: actions must be whole numbers from 0 to {MOST_ACTIONS - 1}")
        return
    if actions.shape[1] > MOST_ACTIONS:
        raise UserError(f"{file} has actions of {actions.shape[1]:,} numbers; at most {MOST_ACTIONS} are read")
    if not np.issubdtype(actions.dtype, np.floating) or not (abs(actions) <= 1).all():  # NaN is not either
        raise UserError(f"{file}: the numbers of an action must be floating-point and from -1 to 1")


def _text(instruction: np.ndarray, file: Path) -> str:
    """Raises UserError for what is not a single text, and for one that is too long or not Unicode."""
    if instruction.ndim or instruction.dtype.kind != "U" or instruction.nbytes > 4 * LONGEST_INSTRUCTION:
        raise UserError(f"{file}: the instruction must be one text of at most {LONGEST_INSTRUCTION:,} characters")
    return texts_of(instruction, f"{file}: the instruction")[0]
