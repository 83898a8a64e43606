"""One attention call of a map: which of its rows it made, and what is kept of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Int
from torch import Tensor

from foveate.attention.call import Call
from foveate.sight.key_store import Span
from foveate.sight.mutation_guard import Unwritten


@dataclass(eq=False, slots=True)
class Rows:
    """One call: some rows of a map."""

    call: Call
    """With the queries; the keys are in the map's `Keys`."""
    span: Span
    start: int
    """How many rows the map had before."""
    run: int
    """Which run of the model made the call, counted from 1."""
    choice: Int[Tensor, "... T"] | None = None
    lent: Sequence[Unwritten] = ()
    """Tensors that are still the model's own."""
    measured: dict[str, Any] = field(default_factory=dict)
    """What was measured already."""

    @property
    def count(self) -> int:
        return self.call.queries.shape[-2]

    @property
    def end(self) -> int:
        """The place behind its last key."""
        return self.span.first + self.span.length
