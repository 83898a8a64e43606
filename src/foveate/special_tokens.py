"""Token ids that are not text: each vocabulary says which it has, and passes them to data and decoding."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Int

from foveate.errors import UserError

IGNORE = -100
"""The label of a place that counts in no loss and no mean: `torch.nn.functional.cross_entropy`'s own default."""

Role = Literal["pad", "start", "end", "unknown", "mask", "separator", "class"]


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a vocabulary. A vocabulary may lack any of them.

    Asking for an absent one raises UserError, except for `pad`: `lengths` say where a text ends, so any id may fill up
    a row.
    """

    ids: Mapping[Role, int]
    """The id of each token that the vocabulary has."""
    withheld: tuple[int, ...] | None = None
    """The ids that no output has; by default those of padding and of the start."""

    def __contains__(self, role: Role) -> bool:
        return role in self.ids

    def __getitem__(self, role: Role) -> int:
        if role not in self.ids:
            raise UserError(f"the vocabulary has no {role} token; it has {', '.join(self.ids) or 'no special token'}")
        return self.ids[role]

    @property
    def pad(self) -> int:
        """Fills up rows."""
        return self.ids.get("pad", 0)

    @property
    def start(self) -> int:
        """Stands before what a decoder writes."""
        return self["start"]

    @property
    def end(self) -> int:
        """Ends a text."""
        return self["end"]

    @property
    def unknown(self) -> int:
        """Stands for what the vocabulary does not have."""
        return self["unknown"]

    @property
    def mask(self) -> int:
        """Stands for a hidden word."""
        return self["mask"]

    @property
    def separator(self) -> int:
        """Stands between two texts."""
        return self["separator"]

    @cached_property
    def never_written(self) -> tuple[int, ...]:
        """The ids that no output has."""
        if self.withheld is not None:
            return self.withheld
        never = {self.ids[role] for role in ("pad", "start") if role in self.ids}
        return tuple(sorted(never - {self.ids.get("end")}))

    def others(self, vocabulary: int) -> Int[np.ndarray, " W"]:
        """The ids of a vocabulary of this many entries that are words; special tokens may stand anywhere in it."""
        return np.setdiff1d(np.arange(vocabulary), [*self.ids.values()])

    @property
    def first_word(self) -> int:
        """The id that follows them, where a vocabulary begins with its special tokens."""
        return max(self.ids.values(), default=-1) + 1


LEARNED = SpecialTokens({"pad": 0, "start": 1, "end": 2, "unknown": 3}, withheld=(0, 1, 3))
"""The first entries of the vocabularies that foveate learns. No output has an unknown word: it would say nothing. Only
the owners of such a vocabulary import them."""
