"""How often an agent does what it shall: walks that arrive, goals that are reached, actions that are as recorded."""

from collections.abc import Sequence
from typing import Any

import numpy as np

CLOSE = 0.1
"""How far each number of an action may be from the recorded one, of movements from -1 to 1."""


def arrivals(ends: Sequence[tuple[int, int, int]], right: Sequence[tuple[int, int, int]]) -> dict[str, float]:
    """In percent: walks that end in the right pose (x, y, heading), and at the right place with any heading."""
    poses = sum(end == one for end, one in zip(ends, right, strict=True))
    places = sum(end[:2] == one[:2] for end, one in zip(ends, right, strict=True))
    return {"success": 100 * poses / max(len(right), 1), "right_place": 100 * places / max(len(right), 1)}


def success(reached: Sequence[bool], actions: Sequence[int]) -> dict[str, float]:
    """The share of levels whose goal is `reached`, in percent, and in how many `actions`."""
    counts = [count for count, one in zip(actions, reached, strict=True) if one]
    return {
        "success": 100 * len(counts) / max(len(reached), 1),
        "actions_when_reached": sum(counts) / len(counts) if counts else float("nan"),
    }


def agreement(kind: str, recorded: Sequence[Sequence[Any]], found: Sequence[np.ndarray]) -> dict[str, float]:
    """The share of steps, and of whole episodes, that are as recorded. Where actions are not choices, also the
    root of the mean squared error of their numbers."""
    hits, squares = [], []
    for actions, done in zip(recorded, found, strict=True):
        right = np.array(actions)
        if kind == "choices":
            hits.append(done == right)
        else:
            hits.append((abs(done - right) <= CLOSE).all(-1))
            squares.append((done - right) ** 2)
    figures = {
        "success": 100 * float(np.mean([one.all() for one in hits])),
        "action_accuracy": 100 * float(np.concatenate(hits).mean()),
    }
    return figures | ({"action_error": float(np.concatenate(squares).mean() ** 0.5)} if squares else {})
