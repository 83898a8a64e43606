"""Episodes that an agent acted itself, kept for replay, and how a checkpoint keeps them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from foveate.data.worlds.grid_levels import SYMBOLS
from foveate.errors import UserError

VIEW = (7, 7, 3)
"""The codes of what an agent sees."""


@dataclass
class Experience:
    """An episode: the views (T + 1, 7, 7, 3) as codes, and the action and its reward after each but the last."""

    instruction: str
    codes: list[np.ndarray]
    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    ended: bool = False
    """Whether the world ended it, not the limit of steps."""


def pack(kept: Sequence[Experience]) -> dict[str, Tensor]:
    """The episodes as tensors, one after the other: 147 bytes for each view, and 5 for each action."""
    text = "\0".join(one.instruction for one in kept).encode()
    return {
        "instructions": torch.tensor(list(text), dtype=torch.uint8),
        "lengths": torch.tensor([len(one.actions) for one in kept]),
        "ended": torch.tensor([one.ended for one in kept], dtype=torch.uint8),
        "actions": torch.tensor([action for one in kept for action in one.actions], dtype=torch.uint8),
        "rewards": torch.tensor([reward for one in kept for reward in one.rewards], dtype=torch.float32),
        "codes": torch.from_numpy(np.stack([view for one in kept for view in one.codes])),
    }


def unpack(packed: Mapping[str, Tensor], count: int) -> list[Experience]:
    """The episodes that `pack` packed, of an agent with `count` actions. Raises UserError where they are damaged."""
    try:
        _check(packed, count)
        return _unpacked(packed)
    except (KeyError, ValueError, RuntimeError, TypeError, OverflowError):
        raise UserError("the episodes that the checkpoint keeps are damaged: remove it to go on from another") from None


def _check(packed: Mapping[str, Tensor], count: int) -> None:
    """Raise ValueError for numbers that no episode has."""
    actions, lengths, codes = packed["actions"], packed["lengths"], packed["codes"]
    kinds = {"actions": torch.uint8, "rewards": torch.float32, "codes": torch.uint8, "lengths": torch.int64}
    if any(packed[name].dtype != kind for name, kind in kinds.items()) or codes.shape[1:] != VIEW:
        raise ValueError
    if bool((codes.reshape(-1, len(SYMBOLS)) >= torch.tensor(SYMBOLS)).any()):
        raise ValueError
    if bool((actions >= count).any()) or bool((lengths < 1).any()) or not bool(packed["rewards"].isfinite().all()):
        raise ValueError


def _unpacked(packed: Mapping[str, Tensor]) -> list[Experience]:
    texts = bytes(packed["instructions"].tolist()).decode().split("\0")
    lengths = packed["lengths"].tolist()
    actions, rewards = (packed[name].split(lengths) for name in ("actions", "rewards"))
    codes = packed["codes"].split([length + 1 for length in lengths])
    return [
        Experience(text, list(seen.numpy()), done.tolist(), brought.tolist(), bool(ended))
        for text, seen, done, brought, ended in zip(
            texts, codes, actions, rewards, packed["ended"].tolist(), strict=True
        )
    ]
