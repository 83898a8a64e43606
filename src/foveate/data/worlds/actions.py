"""What an agent can do in a world: choose from a list, or give numbers, such as the displacements of a robot's hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

Action: TypeAlias = int | tuple[float, ...]
"""A choice by its place in the list; or the numbers of a movement, each from -1 to 1."""

Kind = Literal["choices", "numbers"]


@dataclass(frozen=True)
class ActionSpace:
    """All actions of a world, or those that an agent knows."""

    kind: Kind
    count: int
    """How many choices there are, or of how many numbers an action consists."""

    def __str__(self) -> str:
        return f"{self.count} actions" if self.kind == "choices" else f"actions of {self.count} numbers"

    def serves(self, other: "ActionSpace") -> bool:
        """Returns whether an agent with the other actions can act here: it may know some of the choices only."""
        same = self.count == other.count or (self.kind == "choices" and other.count < self.count)
        return self.kind == other.kind and same

    def draw(self, generator: np.random.Generator) -> Action:
        """An action at random."""
        if self.kind == "choices":
            return int(generator.integers(self.count))
        return tuple(generator.uniform(-1, 1, self.count).tolist())


def space_of(actions: Sequence[Action]) -> ActionSpace:
    """The smallest space that has the recorded actions."""
    first = actions[0]
    if isinstance(first, tuple):
        return ActionSpace("numbers", len(first))
    chosen: Any = actions
    return ActionSpace("choices", max(chosen) + 1)


def name_action(action: Action, names: Sequence[str]) -> str:
    """Returns the text of an action: the name of a choice, or the numbers."""
    if isinstance(action, tuple):
        return " ".join(f"{number:+.2f}" for number in action)
    return names[action]
